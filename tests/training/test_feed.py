import threading
import time

import pytest
import torch

from credro.data import Data
from credro.training.feed import Feed, Inputs, batches, read_ahead
from credro.training.recipe import Recipe
from credro.training.streams import derive, generator
from tests.training.common import blobs, digits, tiny_images

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [1, 2, 16, 128])
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33, 80, 128, 129, 257])
def test_batches_cover_all_and_none_is_of_one(count, size):
    slices = batches(count, size)
    assert [i for s in slices for i in range(count)[s]] == list(range(count))
    lengths = [s.stop - s.start for s in slices]
    if size > 1 and count > 1:
        assert min(lengths) > 1
        assert lengths[:-1] == [size] * (len(lengths) - 1)
        assert lengths[-1] <= size + 1


def test_a_last_batch_of_one_joins_its_neighbour():
    assert [s.stop - s.start for s in batches(33, 16)] == [16, 17]
    assert [s.stop - s.start for s in batches(34, 16)] == [16, 16, 2]


def feed(member=0, seed=0, data=None, augment="none"):
    data = data or digits(50)
    return Feed(data, Inputs.of(data), Recipe(batch_size=16, seed=seed, augment=augment), CPU, member)


def test_an_epoch_sees_every_sample_once_in_an_order_of_its_own():
    data = digits(50)
    seen = [torch.cat([x for x, _ in feed().epoch(e)]) for e in (0, 0, 1)]
    assert torch.equal(seen[0], seen[1])  # an epoch again is the same again
    assert not torch.equal(seen[0], seen[2])
    stored = Inputs.of(data)(data.samples)
    for x in seen:
        assert sorted(x.sum((1, 2, 3)).tolist()) == pytest.approx(sorted(stored.sum((1, 2, 3)).tolist()))
    x, y = next(iter(feed().epoch(0)))
    order = feed().order(0)[:16]
    assert torch.equal(y, data.labels[order])
    torch.testing.assert_close(x, stored[order])


def test_members_and_seeds_have_streams_of_their_own():
    orders = [feed(m, s).order(e).tolist() for m in (0, 1) for s in (0, 1) for e in (0, 1)]
    assert len({tuple(o) for o in orders}) == 8
    images = tiny_images()
    first, second = (torch.cat([x for x, _ in feed(m, 0, images, "crop-flip").epoch(0)]) for m in (0, 1))
    assert not torch.equal(first, second)


def test_streams_depend_on_every_part():
    seeds = {derive(s, m, p, e) for s in (0, 1) for m in (0, 1, 11) for p in ("order", "init") for e in (0, 1, 11)}
    assert len(seeds) == 2 * 3 * 2 * 3
    assert all(0 <= s < 2**63 for s in seeds)
    assert torch.equal(torch.rand(3, generator=generator(0, 1)), torch.rand(3, generator=generator(0, 1)))


def test_inputs_normalise_by_the_sets_statistics():
    data = tiny_images()
    inputs = Inputs.of(data)
    x = inputs(data.samples)
    assert x.mean((0, 2, 3)).tolist() == pytest.approx([0, 0, 0], abs=1e-5)
    assert x.std((0, 2, 3), unbiased=False).tolist() == pytest.approx([1, 1, 1], abs=1e-3)
    assert Inputs.from_json(inputs.to_json()) == inputs
    torch.testing.assert_close(inputs(data.samples.float() / 255), x, atol=1e-5, rtol=1e-4)  # bytes or floats


def test_prepared_samples_go_in_as_they_are():
    x, y = blobs()
    data = Data("own", x.double(), y, (6,), prepared=True)
    torch.testing.assert_close(Inputs.of(data)(data.samples), x)
    assert Inputs.of(data)(data.samples).dtype == torch.float32


def test_a_missing_value_of_a_table_becomes_the_mean():
    inputs = Inputs((2,), (1.0, 5.0), (2.0, 1.0))
    assert inputs(torch.tensor([[float("nan"), 6.0]])).tolist() == [[0.0, 1.0]]


def test_files_give_the_same_batches_as_memory():
    data = tiny_images()
    lazy = Data("lazy", lambda i: data.samples[i], data.labels, data.shape, data.classes)
    inputs, recipe = Inputs.of(data), Recipe(batch_size=10, augment="crop-flip")
    for (a, ya), (b, yb) in zip(
        Feed(data, inputs, recipe, CPU, 1).epoch(3), Feed(lazy, inputs, recipe, CPU, 1).epoch(3), strict=True
    ):
        assert torch.equal(a, b)
        assert torch.equal(ya, yb)


def test_files_are_read_in_order_and_only_a_little_ahead():
    begun, most, lock = set(), [0], threading.Lock()

    def read(index):
        with lock:
            begun.add(int(index))
            most[0] = max(most[0], len(begun))
        time.sleep(0.001 * (5 - int(index) % 5))  # later ones are ready earlier
        return index * 10

    taken = []
    for taken_now, x in enumerate(read_ahead(read, [torch.tensor([i]) for i in range(30)], CPU)):
        taken.append(int(x))
        assert len(begun) <= taken_now + 5
    assert taken == [10 * i for i in range(30)]


def test_channels_last_is_a_layout_not_another_batch():
    data = tiny_images()
    on, off = (
        next(iter(Feed(data, Inputs.of(data), Recipe(channels_last=c), CPU, 0).epoch(0)))[0] for c in (True, False)
    )
    assert torch.equal(on, off)
    assert on.is_contiguous(memory_format=torch.channels_last)
