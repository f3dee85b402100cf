"""The sets that have a name: what they are, where they are published, and what can be fetched with which checksum.

A set can be fetched when its publisher serves it openly and a checksum of the file is public.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remote:
    """One file to fetch. ``to`` is where it ends below the root; an archive ends as that folder."""

    url: str
    md5: str
    to: str
    holds: tuple[str, ...] = ()  # an archive: the files of the folder ``to`` without which it is not complete

    @property
    def archive(self) -> bool:
        """Whether the file is unpacked after the download."""
        return self.url.endswith((".tar", ".tar.gz", ".tgz"))


@dataclass(frozen=True)
class Source:
    """A set: one line about it, the publisher's page, and the files to fetch (none: by hand, from the page)."""

    about: str
    page: str
    files: tuple[Remote, ...] = ()
    embedded: bool = False  # comes with the package or with one it depends on


_CIFAR = "https://www.cs.toronto.edu/~kriz"
_SVHN = "http://ufldl.stanford.edu/housenumbers"
_FASHION = "https://github.com/zalandoresearch/fashion-mnist"
_NOTMNIST = "https://github.com/davidflanagan/notMNIST-to-MNIST"
_DIGITS = "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits"
_ZENODO = "https://zenodo.org/records"


def _archive(url: str, md5: str, to: str, *holds: str) -> tuple[Remote]:
    return (Remote(url, md5, to, holds),)


def _idx(base: str, folder: str, *md5s: str) -> tuple[Remote, ...]:
    files = (f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
    return tuple(Remote(f"{base}/{file}", md5, f"{folder}/raw/{file}") for file, md5 in zip(files, md5s, strict=True))


SOURCES: dict[str, Source] = {
    "cifar10": Source(
        "60,000 photographs 32x32 of 10 kinds of things",
        f"{_CIFAR}/cifar.html",
        _archive(
            f"{_CIFAR}/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", "cifar-10-batches-py",
            *(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta",
        ),
    ),
    "cifar100": Source(
        "60,000 photographs 32x32 of 100 kinds of things",
        f"{_CIFAR}/cifar.html",
        _archive(
            f"{_CIFAR}/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", "cifar-100-python",
            "train", "test", "meta",
        ),
    ),
    "cifar10-c": Source(
        "the CIFAR-10 test images under 19 corruptions at 5 severities",
        f"{_ZENODO}/2535967",
        _archive(
            f"{_ZENODO}/2535967/files/CIFAR-10-C.tar", "56bf5dcef84df0e2308c6dcbcbbd8499", "CIFAR-10-C", "labels.npy"
        ),
    ),
    "cifar100-c": Source(
        "the CIFAR-100 test images under 19 corruptions at 5 severities",
        f"{_ZENODO}/3555552",
        _archive(
            f"{_ZENODO}/3555552/files/CIFAR-100-C.tar", "11f0ed0f1191edbf9fa23466ae6021d3", "CIFAR-100-C", "labels.npy"
        ),
    ),
    "svhn": Source(
        "house numbers, 32x32, in colour",
        f"{_SVHN}/",
        (
            Remote(f"{_SVHN}/train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", "SVHN/train_32x32.mat"),
            Remote(f"{_SVHN}/test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", "SVHN/test_32x32.mat"),
        ),
    ),
    "fmnist": Source(
        "Fashion-MNIST: 70,000 grey pictures 28x28 of clothes",
        _FASHION,
        _idx(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", "FashionMNIST",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    "mnist": Source(
        "70,000 handwritten digits 28x28",
        "http://yann.lecun.com/exdb/mnist/",
        _idx(
            "https://ossci-datasets.s3.amazonaws.com/mnist", "MNIST",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    "notmnist": Source("letters A to J in many typefaces, 28x28, in MNIST's format", _NOTMNIST),
    "places365": Source("photographs of 365 kinds of places", "http://places2.csail.mit.edu/download.html"),
    "imagenet": Source("photographs of 1,000 kinds of things", "https://www.image-net.org/download.php"),
    "camelyon17": Source(
        "patches of lymph nodes from five hospitals, with and without tumour",
        "https://wilds.stanford.edu/datasets/#camelyon17",
    ),
    "digits": Source("scikit-learn's 1,797 handwritten digits, 8x8", _DIGITS, embedded=True),
    "fashion-mini": Source("15,000 pictures of Fashion-MNIST, within the package", _FASHION, embedded=True),
    "fashion-mini-letters": Source(
        "2,000 notMNIST letters, an OOD set for fashion-mini, within the package", _NOTMNIST, embedded=True
    ),
    "fashion-mini-digits": Source(
        "scikit-learn's digits at 28x28, an OOD set for fashion-mini, within the package", _DIGITS, embedded=True
    ),
}  # fmt: skip
"""Every name that ``load`` knows."""
