"""Samples of several tensors: put together, told apart, padded."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from credro._names import ArgumentError
from credro.data import Data, Field, Fields, as_data, pad
from credro.data.fields import RAGGED, as_fields, call, in_order, split, why_not

IDS = torch.randint(1, 50, (12, 5), generator=torch.Generator().manual_seed(0))
MASK = IDS > 10
IMAGES = torch.randint(0, 256, (12, 3, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
ROWS = torch.randn(12, 2, generator=torch.Generator().manual_seed(2))
Y = torch.arange(12) % 3


def ragged(lengths=(3, 1, 4, 2), seed=0):
    draws = torch.Generator().manual_seed(seed)
    return [(torch.randint(1, 9, (n,), generator=draws), i % 2) for i, n in enumerate(lengths)]


def test_a_dict_keeps_names_and_dtypes():
    data = as_data(({"input_ids": IDS, "attention_mask": MASK}, Y))
    assert data.shape == ()
    assert data.fields == (Field("input_ids", (5,), "int64"), Field("attention_mask", (5,), "bool"))
    assert data.in_memory
    batch = data.batch(torch.tensor([4, 1]))
    assert torch.equal(batch.value["input_ids"], IDS[[4, 1]])
    assert batch.value["attention_mask"].dtype == torch.bool
    sample, label = data[7]
    assert torch.equal(sample["input_ids"], IDS[7])
    assert label == 1
    assert "by name" in data.notes[-1]


def test_a_tuple_goes_in_order_and_arrays_serve():
    data = as_data(((IMAGES.numpy(), ROWS.numpy()), Y.numpy()))
    assert [f.name for f in data.fields] == ["", ""]
    assert [f.dtype for f in data.fields] == ["uint8", "float32"]
    image, row = data.batch(torch.tensor([3])).value
    assert torch.equal(image, IMAGES[3:4])
    assert torch.equal(row, ROWS[3:4])


def test_a_subset_takes_all_fields():
    part = as_data(((IMAGES, ROWS), Y)).subset([5, 2])
    assert torch.equal(part.batch(torch.arange(2)).tensors[1], ROWS[[5, 2]])
    assert part.labels.tolist() == [2, 2]


@pytest.mark.parametrize("field", range(2))
def test_fingerprint_and_content_change_with_every_field(field):
    whole = as_data(((IMAGES, ROWS), Y))
    parts = [IMAGES.clone(), ROWS.clone()]
    parts[field][3] += 1
    other = as_data((tuple(parts), Y))
    assert other.fingerprint() != whole.fingerprint()
    differ = (other.content() != whole.content()).nonzero().flatten().tolist()
    assert differ == [3]


def test_names_count_and_their_order_does_not():
    a, b = {"a": IDS, "b": IDS.flip(1)}, {"b": IDS.flip(1), "a": IDS}
    assert torch.equal(as_data((a, Y)).content(), as_data((b, Y)).content())
    swapped = {"a": IDS.flip(1), "b": IDS}
    assert not torch.equal(as_data((a, Y)).content(), as_data((swapped, Y)).content())


def test_content_does_not_depend_on_how_samples_come():
    held = as_data(({"ids": IDS, "mask": MASK.long()}, Y))
    pairs = [({"ids": i, "mask": m.long()}, int(y)) for i, m, y in zip(IDS, MASK, Y, strict=True)]
    labelled = [{"ids": i, "mask": m.long(), "label": int(y)} for i, m, y in zip(IDS, MASK, Y, strict=True)]
    for source in (pairs, labelled, DataLoader(pairs, batch_size=4), DataLoader(labelled, batch_size=5)):
        read = as_data(source)
        assert torch.equal(read.content(), held.content())
        assert read.labels.tolist() == Y.tolist()
        assert read.fields == held.fields


def test_ragged_content_is_that_of_each_sample_alone():
    """What stands beside a sample in a batch pads it, and must not change what it is."""
    items = ragged()
    data = as_data(DataLoader(items, collate_fn=pad))
    assert data.fields == (Field("", (RAGGED,), "int64"),)
    back = as_data(DataLoader(items[::-1], collate_fn=pad))
    assert data.content().tolist() == back.content().tolist()[::-1]
    assert len(set(data.content().tolist())) == len(items)
    wide = data.batch(torch.tensor([1, 2])).value[0]
    assert wide.shape == (2, 4)
    assert wide[0].tolist() == [*items[1][0].tolist(), 0, 0, 0]
    assert data.subset([2, 0]).content().tolist() == [data.content()[2], data.content()[0]]
    assert data.repeats()


@given(
    st.lists(st.lists(st.integers(-5, 5), min_size=1, max_size=6), min_size=1, max_size=5),
    st.integers(-9, 9),
)
def test_pad_fills_the_end_and_marks_it(rows, value):
    items = [({"a": row, "b": [float(v) for v in row]}, 0) for row in rows]
    (found, labels) = pad(items, values={"a": value}, mask="m")
    longest = max(map(len, rows))
    assert labels.tolist() == [0] * len(rows)
    for i, row in enumerate(rows):
        assert found["a"][i].tolist() == row + [value] * (longest - len(row))
        assert found["b"][i].tolist() == [float(v) for v in row] + [0.0] * (longest - len(row))
        assert found["m"][i].tolist() == [1] * len(row) + [0] * (longest - len(row))


def test_pad_of_tuples_and_of_two_axes():
    items = [((torch.ones(2, 3), torch.tensor(1.5)), 0), ((torch.ones(1, 4), torch.tensor(2.5)), 1)]
    (maps, numbers), labels = pad(items)
    assert maps.shape == (2, 2, 4)
    assert float(maps.sum()) == 10
    assert numbers.tolist() == [1.5, 2.5]
    assert labels.tolist() == [0, 1]
    with pytest.raises(ArgumentError, match="values names 'x', but the samples have 0, 1"):
        pad(items, values={"x": 1})


def test_networks_are_called_by_name_or_in_order():
    def net(a, b):
        return a - b

    x = {"b": torch.tensor([1.0]), "a": torch.tensor([5.0])}
    assert call(net, as_fields(x)).item() == 4
    assert call(net, as_fields((x["a"], x["b"]))).item() == 4
    assert call(torch.neg, torch.tensor([2.0])).item() == -2


def test_pieces_and_order():
    whole = as_fields({"a": IDS, "b": ROWS})
    pieces = list(split(whole, 5))
    assert [len(p) for p in pieces] == [5, 5, 2]
    assert torch.equal(torch.cat([p.tensors[1] for p in pieces]), ROWS)
    turned = in_order(as_fields({"b": ROWS, "a": IDS}), whole.described())
    assert turned.names == ("a", "b")
    assert torch.equal(turned.tensors[0], IDS)


def test_what_does_not_fit_is_told():
    wanted = (Field("ids", (RAGGED,), "int64"), Field("image", (3, 4, 4), "uint8"))
    good = (Field("ids", (7,), "int32"), Field("image", (3, 4, 4), "uint8"))
    assert why_not(good, wanted) == ""
    for bad in (
        good[:1],
        good[::-1],
        (),
        (good[0], Field("image", (3, 4, 5), "uint8")),
        (Field("ids", (7,), "float32"), good[1]),
        (good[0], Field("image", (3, 4, 4), "float32")),
    ):
        assert why_not(bad, wanted).startswith("samples must have the fields ids (any) int64; image (3, 4, 4) uint8")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (({"a": [[1, 2], [3]]}, [0, 1]), "must be a tensor or an array"),
        (({"a": torch.ones(3, 2), "b": torch.ones(2, 2)}, [0, 1, 1]), "one row per sample each"),
        (({}, [0]), "has no fields"),
        (({"a": torch.ones(3, 2)}, [0, 1]), "the same length, got 3 samples and 2 labels"),
        (({"a": np.array(["x", "y"])}, [0, 1]), "must hold numbers"),
        ([{"a": torch.ones(2)}] * 3, "must hold their label as one of labels, label"),
        ([{"a": torch.ones(2), "label": 0, "labels": 1}] * 3, "must hold their label as one of"),
        (ragged(), "collate_fn pads them"),
        ([({"a": [1, 2, 3]}, 0), ({"a": [4, 5, 6]}, 1)], "must be a tensor or an array"),
    ],
    ids=["lists", "rows", "empty", "labels", "names", "no label", "two labels", "ragged", "lists in items"],
)
def test_unclear_fields_are_refused(source, said):
    with pytest.raises(ArgumentError, match=said):
        as_data(source)


def test_samples_with_other_fields_are_refused():
    items = [({"a": torch.ones(2)}, 0), ({"a": torch.ones(2), "b": torch.ones(1)}, 1)]
    with pytest.raises(ArgumentError, match="sample 1 has the fields"):
        as_data(DataLoader(items, collate_fn=functools.partial(_first_only)))


def _first_only(items):
    sample, label = items[0]
    rows = {k: v[None].expand(len(items), -1) for k, v in sample.items()}
    return rows, torch.tensor([label] * len(items))


def test_a_field_from_a_file_is_checked():
    with pytest.raises(ValueError, match="dtype must be one of torch's"):
        Field.from_json({"name": "a", "shape": [2], "dtype": "__class__"})
    with pytest.raises(ValueError, match="shape must hold sizes"):
        Field.from_json({"name": "a", "shape": [-2], "dtype": "int64"})


def test_fields_are_a_type_of_their_own():
    assert isinstance(as_data(({"a": IDS}, Y)).samples, Fields)
    assert isinstance(as_data((IDS, Y)), Data)
