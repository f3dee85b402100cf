import pytest
import torch

from credro.objectives import RandomSubset

LOSSES = 2.0 ** torch.arange(10, dtype=torch.float64)  # a sum of powers of two says which were taken


def members_of(total):
    return {i for i in range(10) if int(total) >> i & 1}


def drawn(rule, member, generator, members=5):
    return rule.reduce(LOSSES, member, members, generator)


def test_as_many_as_cvar_keeps_and_every_sample_equally_often():
    rule, generator, times = RandomSubset(delta_g=0.5), torch.Generator().manual_seed(0), torch.zeros(10)
    for _ in range(4000):
        chosen = members_of(round(float(drawn(rule, 0, generator)) * 5))
        assert len(chosen) == 5
        times[list(chosen)] += 1
    # 4000 draws of one half: a deviation of 32; 4.5 deviations over ten samples
    assert (times - 2000).abs().max() < 4.5 * 32
    for member, count in enumerate([5, 6, 7, 8, 10]):
        assert len(members_of(round(float(drawn(rule, member, generator)) * count))) == count


def test_draws_come_from_the_members_generator_alone():
    rule = RandomSubset()
    before = torch.get_rng_state()
    first = drawn(rule, 0, torch.Generator().manual_seed(3))
    torch.manual_seed(99)
    assert drawn(rule, 0, torch.Generator().manual_seed(3)) == first
    torch.set_rng_state(before)


def test_keep_rest_weighs_the_chosen_by_one_over_delta():
    rule = RandomSubset(delta_g=0.5, keep_rest=True)
    losses = LOSSES.clone().requires_grad_()
    rule.reduce(losses, 0, 5, torch.Generator().manual_seed(0)).backward()
    total = 5 * 2 + 5 * 1
    assert sorted(losses.grad.tolist()) == pytest.approx([1 / total] * 5 + [2 / total] * 5)


def test_it_has_no_option_that_does_nothing():
    assert set(RandomSubset().config()) == {"rule", "delta_g", "spacing", "keep_rest"}
    assert RandomSubset(delta_g=0.7).describe(1, 5) == {"delta": 0.775}
