import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from credro.data import Data, as_data, to_float
from credro.data.adapt import as_data_of
from credro.data.base import content_of

X = torch.arange(10 * 12, dtype=torch.uint8).view(10, 3, 2, 2)
Y = torch.arange(10) % 4


class Doubled:
    """A reader that can travel to another process."""

    def __call__(self, index):
        return X[index]


@pytest.fixture(params=["memory", "lazy"])
def data(request):
    samples = X if request.param == "memory" else Doubled()
    groups = torch.arange(10) // 5
    return Data("x", samples, Y, (3, 2, 2), ("a", "b", "c", "d"), groups, ("g", "h"))


class Pairs(Dataset):
    """A user's own dataset."""

    def __init__(self, n=10, **attributes):
        self.n = n
        self.__dict__.update(attributes)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return X[i].float() * 2, int(Y[i])


def test_is_a_dataset(data):
    sample, label = data[3]
    torch.testing.assert_close(sample, X[3].float() / 255)
    assert label == 3
    assert isinstance(label, int)
    torch.testing.assert_close(data[-1][0], X[9].float() / 255)
    with pytest.raises(IndexError):
        data[10]
    seen = [(x, y) for x, y in DataLoader(data, batch_size=4)]
    assert torch.equal(torch.cat([y for _, y in seen]), Y)
    torch.testing.assert_close(torch.cat([x for x, _ in seen]), X.float() / 255)


def test_subset_of_a_subset(data):
    part = data.subset([8, 2, 5, 1]).subset(torch.tensor([3, 0]))
    assert torch.equal(part.batch(torch.arange(2)), X[[1, 8]])
    assert part.labels.tolist() == [1, 0]
    assert part.groups.tolist() == [0, 1]
    assert part.in_memory == data.in_memory


def test_travels_to_another_process(data):
    part = pickle.loads(pickle.dumps(data.subset([4, 2])))
    assert torch.equal(part.batch(torch.tensor([0, 1])), X[[4, 2]])
    own = pickle.loads(pickle.dumps(as_data(Pairs())))
    assert torch.equal(own.batch(torch.tensor([7])), X[[7]].float() * 2)


def test_relabel(data):
    other = data.relabel(torch.zeros(10, dtype=torch.long), ["z"])
    assert other.classes == ("z",)
    assert data.classes == ("a", "b", "c", "d")
    assert data.relabel(Y).classes == data.classes
    with pytest.raises(ValueError, match="one entry per sample: got 3 for 10 samples"):
        data.relabel(torch.zeros(3))


def test_fingerprint_changes_with_content(data):
    prints = {
        data.fingerprint(),
        data.relabel(Y.flip(0)).fingerprint(),
        data.subset(range(9)).fingerprint(),
        data.subset([1, 0, *range(2, 10)]).relabel(Y).fingerprint(),
    }
    assert len(prints) == 4
    assert data.fingerprint() == data.subset(range(10)).fingerprint()


def test_to_float():
    assert to_float(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [0.0, 1.0]
    assert to_float(torch.tensor([3.5])).tolist() == [3.5]


def test_as_data_takes_pairs_and_arrays():
    x, y = np.ones((5, 3), np.float32), np.array([0, 1, 2, 1, 0], np.int32)
    data = as_data((x, y), classes=("a", "b", "c"))
    assert data.shape == (3,)
    assert data.labels.dtype == torch.int64
    assert data.prepared
    assert not as_data((X, Y)).prepared
    assert as_data((X.float(), Y.double())).labels.dtype == torch.float32
    assert as_data(data) is data
    assert torch.equal(as_data(TensorDataset(X, Y)).samples, X)
    with pytest.raises(ValueError, match="same length, got 5 samples and 2 labels"):
        as_data((x, y[:2]))


@pytest.mark.parametrize(
    "source", [Pairs(), DataLoader(Pairs(), batch_size=3, shuffle=True), Pairs(targets=Y.tolist())]
)
def test_as_data_takes_datasets_and_loaders(source):
    data = as_data(source)
    assert len(data) == 10
    assert data.shape == (3, 2, 2)
    assert data.prepared
    assert torch.equal(data.labels, Y)
    assert torch.equal(data.batch(torch.tensor([9, 0])), X[[9, 0]].float() * 2)


def test_as_data_keeps_a_loaders_collate():
    loader = DataLoader(Pairs(), collate_fn=lambda rows: (torch.stack([x for x, _ in rows]) + 1, None))
    assert torch.equal(as_data(loader).batch(torch.tensor([1])), X[[1]].float() * 2 + 1)


class Turned(Pairs):
    """Labels of its own making: what ``targets`` holds is not what the items say."""

    def __getitem__(self, i):
        return X[i].float(), 9 - int(Y[i])


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        (Turned(targets=Y.tolist()), 9 - Y),
        (Pairs(targets=(Y + 1).tolist(), target_transform=lambda y: y - 1), Y),
        (Pairs(labels=["a", "b", "c", "d"]), Y),  # the names of the classes
        (Pairs(labels=[0, 1, 2, 3]), Y),
        (Pairs(targets=["a"] * 10, labels=Y.numpy()), Y),
        (Subset(Pairs(targets=Y.tolist()), [4, 3, 9]), Y[[4, 3, 9]]),
        ([(X[i], Y[[i]]) for i in range(10)], Y),  # a column of class numbers
    ],
)
def test_as_data_labels_are_those_of_the_items(source, labels):
    data = as_data(source)
    assert data.labels.dtype == torch.int64
    assert [data.classes[i] for i in data.labels.tolist()] == [str(y) for y in labels.tolist()]


@pytest.mark.parametrize("dataset", [Pairs(), TensorDataset(X.float() * 2, Y), "own"])
def test_as_data_takes_the_part_that_a_loader_draws(dataset, data):
    dataset = data if dataset == "own" else dataset
    part = as_data(DataLoader(dataset, batch_size=2, sampler=SubsetRandomSampler([7, 1, 4])))
    assert len(part) == 3
    assert torch.equal(part.labels, Y[[7, 1, 4]])
    assert torch.equal(part.batch(torch.tensor([2, 0])).float(), X[[4, 7]].float() * (1 if dataset is data else 2))


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"sampler": WeightedRandomSampler([1.0] * 10, 10)}, "WeightedRandomSampler"),
        ({"batch_sampler": type("Mine", (BatchSampler,), {})([0, 1], 2, False)}, "Mine"),
        ({"batch_size": None}, "batch_size=None"),
    ],
)
def test_as_data_does_not_ignore_a_sampler(options, given):
    with pytest.raises(TypeError, match=f"or by a SubsetRandomSampler, got {given}: .*Subset of it"):
        as_data(DataLoader(Pairs(), **options))


def test_as_data_names_a_label_it_cannot_read():
    with pytest.raises(TypeError, match="or all names; that of item 1 of list is 'cat'"):
        as_data([(X[0], 0), (X[1], "cat")])


def test_as_data_takes_names():
    assert as_data(Pairs(classes=["u", "v"])).classes == ("u", "v")
    assert as_data(Pairs(classes=["u", "v"]), classes=("p", "q")).classes == ("p", "q")


def test_as_data_refuses_what_it_cannot_use():
    class Stream(IterableDataset):
        def __iter__(self):
            yield from ()

    for source in (Stream(), DataLoader(Stream()), object()):
        with pytest.raises(TypeError, match="data must be a credro Data"):
            as_data(source)
    with pytest.raises(ValueError, match="data is empty"):
        as_data(Pairs(0))
    with pytest.raises(TypeError, match="must give pairs"):
        as_data([1, 2, 3])


@pytest.mark.parametrize(
    ("y", "classes", "labels"),
    [
        (np.array([1, 2, 2, 1]), ("1", "2"), [0, 1, 1, 0]),
        ([8, 3, 5, 3], ("3", "5", "8"), [2, 0, 1, 0]),
        (torch.tensor([[4], [2], [4]]), ("2", "4"), [1, 0, 1]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        ([-1, 1, -1], ("-1", "1"), [0, 1, 0]),
        (["dog", "cat", "dog"], ("cat", "dog"), [1, 0, 1]),
        ([10, 9, 100], ("9", "10", "100"), [1, 0, 2]),  # by value, not as text
    ],
)
def test_the_distinct_values_are_the_classes(y, classes, labels):
    data = as_data((np.zeros((len(y), 2), np.float32), y))
    assert data.classes == classes
    assert data.labels.tolist() == labels


def test_classes_say_what_is_missing():
    x = np.zeros((3, 2), np.float32)
    assert as_data((x, [0, 3, 1]), classes=5).classes == ("0", "1", "2", "3", "4")
    assert as_data((x, [0, 3, 1]), classes=5).labels.tolist() == [0, 3, 1]
    assert as_data((x, [7, 9, 7]), classes=[9, 8, 7]).labels.tolist() == [2, 0, 2]
    assert as_data((x, [0, 1, 1]), classes=["no", "yes"]).labels.tolist() == [0, 1, 1]  # names for 0 and 1
    assert as_data((x, ["yes", "no", "no"]), classes=["no", "yes"]).labels.tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match=r"label 3 of sample 1 is not one of the 2 classes: 0, 1 \(1 such"):
        as_data((x, [0, 3, 1]), classes=2)
    assert as_data((x, [2, 1, 1]), classes=["1", "2", "unknown"]).labels.tolist() == [1, 0, 0]  # by value
    with pytest.raises(ValueError, match="classes must differ"):
        as_data((x, [0, 1, 1]), classes=["a", "a"])
    with pytest.raises(TypeError, match="classes must be a list of names, got the text 'ab'"):
        as_data((x, [0, 1, 1]), classes="ab")


def test_labels_of_one_kind():
    with pytest.raises(TypeError, match="y must hold numbers or names, all of one kind; that of sample 1 is None"):
        as_data((np.zeros((2, 2)), np.array(["a", None], dtype=object)))


def test_other_samples_are_numbered_by_the_known_classes():
    x = np.zeros((3, 2), np.float32)
    known = ("1", "2")
    assert as_data_of((x, [2, 2, 2]), known).labels.tolist() == [1, 1, 1]  # and not one class, number 0
    strange = as_data_of((x, [2, 3, 0]), known)
    assert strange.labels.tolist() == [1, -1, -1]
    assert "2 samples are of classes that are not known" in strange.notes[-1]
    other = Data("o", torch.zeros(3, 2), torch.tensor([0, 1, 2]), (2,), ("2", "3", "1"))
    assert as_data_of(other, known).labels.tolist() == [1, -1, 0]
    # a dataset that names its classes counts them from 0, whatever the names look like
    named = Pairs(3, classes=["2", "1", "7", "8"])
    assert as_data_of(named, ("1", "2")).labels.tolist() == [1, 0, -1]
    with pytest.warns(UserWarning, match="compared by number"):
        assert as_data_of(replace(other, classes=("a", "b", "c")), ("p", "q", "r")).labels.tolist() == [0, 1, 2]


def test_a_loader_says_what_of_it_is_not_used():
    data = as_data(DataLoader(Pairs(), batch_size=3, drop_last=True, num_workers=2))
    assert data.batch_size == 3
    assert "drop_last=True" in data.notes[0]
    assert "num_workers=2" in data.notes[0]
    assert as_data(DataLoader(Pairs(), batch_size=4)).notes == ()
    assert as_data(DataLoader(TensorDataset(X, Y), batch_size=5)).batch_size == 5


def test_content_is_of_the_values_alone(data):
    floats = (X.double() / 255).numpy()
    assert torch.equal(data.content(), content_of(X))
    assert torch.equal(content_of(X.float() / 255), content_of(X))
    assert torch.equal(content_of(torch.from_numpy(floats)), content_of(X))
    assert torch.equal(data.subset([3, 1]).content(), content_of(X)[[3, 1]])
    assert len(set(content_of(X).tolist())) == 10
    table = torch.randn(200, 3)
    assert torch.equal(content_of(table), content_of(table.double()))
    assert len(set(content_of(table).tolist())) == 200
    assert content_of(torch.tensor([[0.0]])) == content_of(torch.tensor([[-0.0]]))
    tokens = torch.tensor([[2**24], [2**24 + 1]])  # one number as floats
    assert content_of(tokens)[0] != content_of(tokens)[1]
    assert content_of(torch.tensor([[3, 4]])) == content_of(torch.tensor([[3.0, 4.0]]))


def test_labels_of_data_without_names_count_the_classes_that_are_known():
    plain = Data("own", torch.zeros(4, 2), torch.tensor([2, 0, 2, 5]), (2,))
    for source in (plain, (plain.samples, plain.labels)):
        assert as_data_of(source, ("ant", "bee", "cat")).labels.tolist() == [2, 0, 2, -1]
