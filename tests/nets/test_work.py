import math

import torch
from torch import nn

from credro.nets import make, multiply_adds


def test_linear_layers_and_convolutions_by_hand():
    assert multiply_adds(nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5)), torch.zeros(7, 20)) == 750
    conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.Flatten(), nn.Linear(8 * 16, 4))
    assert multiply_adds(conv, torch.zeros(2, 3, 8, 8)) == 16 * 8 * 27 + 512


def test_a_known_network():
    """12.5 million for ResNet-8 on CIFAR: 0.44 of the stem, 4.72 of the first stage and 3.67 of each of the others."""
    found = multiply_adds(make("resnet8", 10, (3, 32, 32)), torch.zeros(2, 3, 32, 32))
    assert found == 442_368 + 4_718_592 + 2 * (3_538_944 + 131_072) + 640


def test_a_network_for_tables_uses_the_weights_of_its_waves_once():
    net = make("table", 3, (20,))
    waves = 20 * 16 * 2 + 20 * 16 * 3 + 20 * 3  # frequencies and phases, mixtures, biases
    assert multiply_adds(net, torch.zeros(2, 20)) == waves + 80 * 128 + 128 * 128 + 128 * 3


def test_what_cannot_be_told_is_infinite_and_nothing_is_left_behind():
    net = nn.Sequential(nn.Embedding(9, 4), nn.MultiheadAttention(4, 2), nn.Linear(4, 2))
    assert multiply_adds(net, torch.zeros(3, 2, dtype=torch.long)) == math.inf
    plain = nn.Sequential(nn.Linear(4, 2)).train()
    multiply_adds(plain, torch.zeros(1, 4))
    assert plain.training
    assert not plain[0]._forward_hooks
