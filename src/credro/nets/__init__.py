"""Networks by name, with published state-dict keys."""

from credro.nets.frozen import train_mode
from credro.nets.gaussian import GaussianNet, make_gaussian
from credro.nets.head import head, set_head
from credro.nets.registry import NETS, make, make_under_seed, usual_shape
from credro.nets.resnet import BasicBlock, Bottleneck, ResNet
from credro.nets.small import CNN, MLP
from credro.nets.table import TableNet
from credro.nets.weights import LoadReport, load_weights
from credro.nets.wide import WideResNet
from credro.nets.work import multiply_adds

__all__ = [
    "CNN",
    "MLP",
    "NETS",
    "BasicBlock",
    "Bottleneck",
    "GaussianNet",
    "LoadReport",
    "ResNet",
    "TableNet",
    "WideResNet",
    "head",
    "load_weights",
    "make",
    "make_gaussian",
    "make_under_seed",
    "multiply_adds",
    "set_head",
    "train_mode",
    "usual_shape",
]
