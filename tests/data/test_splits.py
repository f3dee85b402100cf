import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from credro.data.base import Data
from credro.data.splits import limit, split, split_groups

SHARES = st.floats(0.02, 0.98)
SEEDS = st.integers(0, 2**31)


def partition(a, b, n):
    """Every sample on exactly one side, each side sorted."""
    assert sorted(a.tolist() + b.tolist()) == list(range(n))
    assert a.tolist() == sorted(a.tolist())
    assert b.tolist() == sorted(b.tolist())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=200), SHARES, SEEDS, st.booleans())
def test_split_is_exact_in_total_and_within_one_per_class(labels, fraction, seed, stratify):
    n = len(labels)
    assume(0 < round(fraction * n) < n)
    y = torch.tensor(labels)
    a, b = split(y, fraction, seed=seed, stratify=stratify)
    partition(a, b, n)
    assert len(a) == round(fraction * n)
    if stratify:
        for c in set(labels):
            assert abs((y[a] == c).sum().item() - fraction * labels.count(c)) < 1 + 1e-5


def test_split_takes_every_sample_equally_often():
    y = torch.tensor([0] * 6 + [1] * 4)
    hits = torch.zeros(10)
    for seed in range(2000):
        hits[split(y, 0.5, seed=seed)[0]] += 1
    assert (hits / 2000 - 0.5).abs().max() < 0.05  # four and a half standard errors


def test_split_reads_data_and_seeds_matter():
    data = Data("x", torch.zeros(100, 1), torch.arange(100) % 4, (1,))
    a, _ = split(data, 0.25, seed=1)
    assert torch.bincount(data.labels[a]).tolist() in ([6, 6, 6, 7], [6, 6, 7, 6], [6, 7, 6, 6], [7, 6, 6, 6])
    assert torch.equal(a, split(data.labels, 0.25, seed=1)[0])
    assert not torch.equal(a, split(data, 0.25, seed=2)[0])


def test_exact_shares_do_not_suffer_from_floats():
    a, _ = split(torch.arange(3).repeat_interleave(30), 0.1, seed=0)
    assert torch.bincount(a // 30).tolist() == [3, 3, 3]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=120), SHARES, SEEDS, st.booleans())
def test_groups_never_leak(groups, fraction, seed, with_labels):
    assume(len(set(groups)) > 1)
    g = torch.tensor(groups)
    labels = torch.randint(0, 3, (len(g),), generator=torch.Generator().manual_seed(seed)) if with_labels else None
    a, b = split_groups(g, fraction, seed=seed, labels=labels)
    partition(a, b, len(g))
    assert len(a)
    assert len(b)
    assert not set(g[a].tolist()) & set(g[b].tolist())
    if not with_labels:
        sizes = torch.bincount(g)
        # Half the largest group; or a side that had to be given something holds, or lacks, one smallest group.
        bound = max(sizes.max() / 2, sizes[sizes > 0].min())
        assert abs(len(a) - fraction * len(g)) <= bound + 1e-6


def test_group_labels_are_balanced():
    generator = torch.Generator().manual_seed(0)
    groups = torch.arange(60).repeat_interleave(20)
    ill = torch.rand(60, generator=generator).repeat_interleave(20)
    labels = (torch.rand(1200, generator=generator) < ill).long()
    worst = 0.0
    for seed in range(20):
        a, _ = split_groups(groups, 0.3, seed=seed, labels=labels)
        worst = max(worst, abs(labels[a].float().mean() - labels.float().mean()).item())
        assert abs(len(a) / 1200 - 0.3) < 0.03
    assert worst < 0.05


def test_groups_may_be_names():
    names = ["ann", "bob", "ann", "cyd", "bob", "dee"]
    a, b = split_groups(names, 0.5, seed=0)
    assert not {names[i] for i in a} & {names[i] for i in b}


def test_limit_is_a_part_of_one_shuffle():
    index = limit(50, 20, seed=4)
    assert len(set(index.tolist())) == 20
    assert torch.equal(index[:7], limit(50, 7, seed=4))
    assert limit(50, 50, seed=4).sort().values.tolist() == list(range(50))
    with pytest.raises(ValueError, match=r"n must lie in 0\.\.50, got 51"):
        limit(50, 51, seed=0)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 1.5, float("nan")])
def test_share_out_of_range(fraction):
    with pytest.raises(ValueError, match=r"fraction must lie in \(0, 1\)"):
        split(torch.arange(10), fraction, seed=0)
    with pytest.raises(ValueError, match=r"fraction must lie in \(0, 1\)"):
        split_groups(torch.arange(10), fraction, seed=0)


def test_other_errors():
    with pytest.raises(ValueError, match="the set is empty"):
        split(torch.empty(0, dtype=torch.long), 0.5, seed=0)
    with pytest.raises(ValueError, match="the set is empty"):
        split_groups(torch.empty(0, dtype=torch.long), 0.5, seed=0)
    with pytest.raises(ValueError, match="leaves one side empty"):
        split(torch.zeros(3, dtype=torch.long), 0.1, seed=0)
    with pytest.raises(ValueError, match="at least 2 different groups"):
        split_groups(torch.zeros(5, dtype=torch.long), 0.5, seed=0)
    with pytest.raises(ValueError, match="pass stratify=False"):
        split(torch.rand(10), 0.5, seed=0)
    with pytest.raises(ValueError, match="one entry per sample"):
        split_groups(torch.arange(5), 0.5, seed=0, labels=torch.zeros(4, dtype=torch.long))
