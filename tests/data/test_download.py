"""Downloads, against a server on this machine's loopback address."""

import hashlib
import io
import socket
import tarfile

import pytest

from credro.data.download import DownloadError, get, md5
from credro.data.sources import SOURCES, Remote, Source
from tests.data.serving import serving

CONTENT = bytes(range(256)) * 4000  # a megabyte


@pytest.fixture
def server():
    with serving({"/f.bin": CONTENT}) as server:
        yield server


def digest(content):
    return hashlib.md5(content).hexdigest()


def single(server, content=CONTENT, path="/f.bin"):
    return Source("one file", "page", (Remote(server.url + path, digest(content), "set/f.bin"),))


def archive(server, members, **more):
    """A tar file on the server. members: name -> bytes, or a TarInfo of another kind."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in members.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    server.files["/set.tar.gz"] = stream.getvalue()
    remote = Remote(server.url + "/set.tar.gz", digest(stream.getvalue()), "set", more.get("holds", ()))
    return Source("an archive", "page", (remote,))


def leftovers(root):
    return sorted(path.name for path in root.rglob("*"))


def test_fresh(server, tmp_path):
    calls = []
    (path,) = get("own", tmp_path, source=single(server), progress=lambda *call: calls.append(call))
    assert path == tmp_path / "set/f.bin"
    assert path.read_bytes() == CONTENT
    assert calls[-1] == ("f.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)
    assert leftovers(tmp_path) == ["f.bin", "set"]
    assert server.requests == [("/f.bin", None)]


def test_present_and_right_is_left_alone(server, tmp_path):
    get("own", tmp_path, source=single(server))
    get("own", tmp_path, source=single(server))
    assert len(server.requests) == 1


def test_present_and_other_is_not_overwritten(server, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/f.bin").write_bytes(b"mine")
    with pytest.raises(DownloadError, match="is not the published file"):
        get("own", tmp_path, source=single(server))
    assert (tmp_path / "set/f.bin").read_bytes() == b"mine"
    assert server.requests == []


def test_resumed_within_one_call(server, tmp_path):
    server.cuts = [300_000, 200_000]
    (path,) = get("own", tmp_path, source=single(server))
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=300000-", "bytes=500000-"]


def test_resumed_by_a_later_call(server, tmp_path):
    server.cuts = [400_000, 0, 0, 0]
    with pytest.raises(DownloadError, match=r"400000 bytes are kept in .*f\.bin\.part"):
        get("own", tmp_path, source=single(server), attempts=2)
    assert leftovers(tmp_path) == ["f.bin.part", "set"]
    server.cuts, server.requests = [], []
    (path,) = get("own", tmp_path, source=single(server))
    assert path.read_bytes() == CONTENT
    assert server.requests == [("/f.bin", "bytes=400000-")]
    assert leftovers(tmp_path) == ["f.bin", "set"]


def test_server_without_ranges_begins_again(server, tmp_path):
    server.ranges = False
    server.cuts = [400_000]
    (path,) = get("own", tmp_path, source=single(server))
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=400000-"]


def test_server_without_lengths(server, tmp_path):
    server.lengths = False
    calls = []
    (path,) = get("own", tmp_path, source=single(server), progress=lambda *call: calls.append(call))
    assert path.read_bytes() == CONTENT
    assert calls[-1] == ("f.bin", len(CONTENT), None)


def test_wrong_checksum(server, tmp_path):
    with pytest.raises(DownloadError, match=f"md5 is {digest(CONTENT)}, published is {digest(b'other')}"):
        get("own", tmp_path, source=single(server, b"other"))
    assert leftovers(tmp_path) == ["set"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("part", [b"x" * 5000, CONTENT + b"and more", CONTENT])
def test_a_part_of_something_else_is_thrown_away(server, tmp_path, part):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/f.bin.part").write_bytes(part)
    (path,) = get("own", tmp_path, source=single(server))
    assert path.read_bytes() == CONTENT
    assert leftovers(tmp_path) == ["f.bin", "set"]


def test_not_found(server, tmp_path):
    with pytest.raises(DownloadError, match=r"/gone: the server answers 404 Not Found"):
        get("own", tmp_path, source=single(server, path="/gone"))
    assert len(server.requests) == 1


def test_no_server(tmp_path):
    with socket.socket() as closed:  # a port that nobody listens on
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    source = Source("x", "page", (Remote(f"http://127.0.0.1:{port}/x", "0", "x"),))
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:\d+/x: .*0 bytes are kept"):
        get("own", tmp_path, source=source, attempts=2)


def test_only_http(tmp_path):
    (tmp_path / "secret").write_text("x")
    source = Source("x", "page", (Remote(f"file://{tmp_path}/secret", "0", "x"),))
    with pytest.raises(ValueError, match="url must begin with http"):
        get("own", tmp_path, source=source)


def test_archive(server, tmp_path):
    source = archive(server, {"set/a": b"1", "set/deep/b": b"22", "other": b"3"}, holds=("a",))
    (path,) = get("own", tmp_path, source=source)
    assert path == tmp_path / "set"
    assert leftovers(tmp_path) == ["a", "b", "deep", "set"]
    assert (path / "deep/b").read_bytes() == b"22"
    get("own", tmp_path, source=source)
    assert len(server.requests) == 1
    (path / "a").unlink()
    with pytest.raises(DownloadError, match="exists, but lacks a"):
        get("own", tmp_path, source=source)


def link(name, target, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "members",
    [
        {"../evil": b"x"},
        {"set/../../evil": b"x"},
        {"/tmp/credro-evil": b"x"},
        {"set\\..\\..\\evil": b"x"},
        {"C:/evil": b"x"},
        {"set/l": link("set/l", "/etc", tarfile.SYMTYPE), "set/l/evil": b"x"},
        {"set/l": link("set/l", "../../evil", tarfile.LNKTYPE)},
        {"set/pipe": link("set/pipe", "", tarfile.FIFOTYPE)},
    ],
)
def test_malicious_archive_writes_nothing(server, tmp_path, members):
    root = tmp_path / "deep" / "root"
    with pytest.raises(DownloadError, match="is not safe"):
        get("own", root, source=archive(server, {"set/fine": b"x", **members}))
    assert leftovers(tmp_path) == ["deep", "root", "set.tar.gz"]


def test_without_a_filter_nothing_is_unpacked(server, tmp_path, monkeypatch):
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(DownloadError, match=r"is not unpacked: .* Python 3\.10\.12"):
        get("own", tmp_path, source=archive(server, {"set/a": b"1"}))
    assert leftovers(tmp_path) == ["set.tar.gz"]


def test_owners_and_modes_of_an_archive_are_not_taken(server, tmp_path):
    odd = tarfile.TarInfo("set/a")
    odd.mode, odd.uid = 0o4777, 12345
    (path,) = get("own", tmp_path, source=archive(server, {"set/a": odd}))
    assert (path / "a").stat().st_mode & 0o7022 == 0  # nothing set, nobody else may write
    assert (path / "a").stat().st_uid == tmp_path.stat().st_uid


def test_broken_archives(server, tmp_path):
    server.files["/set.tar.gz"] = archive(server, {"set/a": bytes(9999)}) and server.files["/set.tar.gz"][:60]
    cut = server.files["/set.tar.gz"]
    source = Source("x", "page", (Remote(server.url + "/set.tar.gz", digest(cut), "set"),))
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        get("own", tmp_path, source=source)
    with pytest.raises(DownloadError, match="does not hold the folder 'set'"):
        get("own", tmp_path / "b", source=archive(server, {"elsewhere/a": b"1"}))
    with pytest.raises(DownloadError, match="lacks b"):
        get("own", tmp_path / "c", source=archive(server, {"set/a": b"1"}, holds=("a", "b")))


def test_mirror_of_a_named_set(server, tmp_path):
    """The mirror's files are held to the publisher's checksums."""
    for file in ("train_32x32.mat", "test_32x32.mat"):
        server.files[f"/mirror/{file}"] = b"not the published bytes"
    with pytest.raises(DownloadError, match="published is e26dedcc434d2e4c54c9b2d4a06d8373"):
        get("svhn", tmp_path, source=server.url + "/mirror/")
    assert server.requests == [("/mirror/train_32x32.mat", None)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("camelyon17", "cannot be fetched by credro: get it from https://wilds"),
        ("digits", "needs no download"),
        ("fashion-mini", "needs no download"),
    ],
)
def test_sets_that_are_not_fetched(name, message, tmp_path):
    with pytest.raises(DownloadError, match=message):
        get(name, tmp_path)


def test_unknown_set(tmp_path):
    with pytest.raises(
        ValueError, match=r"name must be one of cifar10, .*, got 'cifar11' \(did you mean 'cifar10'\?\)"
    ):
        get("cifar11", tmp_path)


def test_table_of_sources_is_sound():
    for source in SOURCES.values():
        assert source.page.startswith("http")
        for file in source.files:
            assert len(file.md5) == 32
            assert int(file.md5, 16) > 0
            assert file.url.startswith("http")
            assert not file.archive or file.holds
    assert SOURCES["cifar10"].files[0].md5 == "c58f30108f718f92721af3b95e74349a"


def test_md5(tmp_path):
    (tmp_path / "x").write_bytes(CONTENT)
    assert md5(tmp_path / "x") == digest(CONTENT)
