import numpy as np
import pytest
import torch

from credro.data import Data
from credro.data.sheet import GAP, MARGIN, contact_sheet
from tests.data.layouts import chw, images


def test_images_stand_upright_in_their_class():
    x = images(6, 4, 5)
    data = Data("x", torch.from_numpy(chw(x).copy()), torch.tensor([1, 0, 1, 0, 1, 1]), (3, 4, 5), ("a", "b"))
    sheet = np.asarray(contact_sheet(data, each=3, scale=2))
    for row, chosen in enumerate(([1, 3], [0, 2, 4])):
        for column, i in enumerate(chosen):
            top, left = row * (4 * 2 + GAP) + GAP, MARGIN + column * (5 * 2 + GAP)
            np.testing.assert_array_equal(sheet[top : top + 8 : 2, left : left + 10 : 2], x[i])
    assert (sheet[GAP : GAP + 8, MARGIN + 2 * 12 : MARGIN + 2 * 12 + 10] == 255).all()  # class a has two only


def test_grey_and_many_classes():
    x = torch.zeros(30, 1, 8, 8, dtype=torch.uint8)
    data = Data("x", x, torch.arange(30), (1, 8, 8))
    assert contact_sheet(data, classes=5).height == 5 * (8 * 5 + GAP) + GAP


def test_tables_have_no_sheet():
    with pytest.raises(ValueError, match="needs images"):
        contact_sheet(Data("x", torch.ones(3, 4), torch.zeros(3), (4,)))
