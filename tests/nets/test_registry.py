import pytest
import torch
from torch import nn
from torch.nn import functional

from credro.nets import MLP, NETS, make, make_under_seed, usual_shape

SHAPES = {name: usual_shape(name) or (1, 28, 28) for name in NETS}


@pytest.mark.parametrize("name", NETS)
def test_forward_and_backward_at_the_real_input_size(name):
    torch.manual_seed(0)
    net = make(name, classes=5, shape=SHAPES[name])
    x = torch.randn(2, *SHAPES[name])
    logits = net(x)
    assert logits.shape == (2, 5)
    functional.cross_entropy(logits, torch.tensor([1, 4])).backward()
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().max() > 0, key


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8", "resnet18", "wrn28-4"])
def test_eval_mode_is_a_function_of_the_sample_alone(name):
    torch.manual_seed(0)
    net = make(name, shape=SHAPES[name])
    x = torch.randn(4, *SHAPES[name])
    net(x)  # running statistics that are not the initial ones
    net.eval()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    with torch.no_grad():
        whole = net(x)
        assert torch.equal(whole, net(x))
        torch.testing.assert_close(torch.cat([net(one) for one in x.split(1)]), whole, rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


@pytest.mark.parametrize("name", NETS)
def test_members_differ_in_every_random_tensor_and_only_by_their_seed(name):
    def factory():
        return make(name, shape=SHAPES[name])

    state = torch.get_rng_state()
    first = make_under_seed(factory, 1)
    a, b, again = first.state_dict(), *(make_under_seed(factory, seed).state_dict() for seed in (2, 1))
    assert torch.equal(torch.get_rng_state(), state)
    layers = {key for key, module in first.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)}
    for key, value in a.items():
        assert torch.equal(value, again[key]), key
        random = value.is_floating_point() and value.min() < value.max()
        assert random or key.removesuffix(".weight") not in layers, key
        if random:
            assert (value == b[key]).float().mean() < 0.01, key


def test_seed_does_not_depend_on_what_was_drawn_before():
    first = make_under_seed(lambda: MLP((3,)), 7)
    torch.rand(5)
    second = make_under_seed(lambda: MLP((3,)), 7)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_an_error_in_the_factory_leaves_the_generator_alone():
    def broken():
        torch.rand(3)
        raise RuntimeError("broken")

    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="broken"):
        make_under_seed(broken, 0)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("mlp", (1, 8, 8), {"batch_norm": True}),
        ("cnn", (1, 16, 16), {}),
        ("resnet8", (3, 16, 16), {"widths": (4, 6, 8)}),
    ],
)
def test_stacked_members_train_as_each_alone(name, shape, options):
    members = [make_under_seed(lambda: make(name, 4, shape, **options), seed).double() for seed in range(3)]
    torch.manual_seed(0)
    x, y = torch.randn(3, 6, *shape, dtype=torch.float64), torch.randint(0, 4, (3, 6))
    parameters, buffers = torch.func.stack_module_state(members)
    buffers = {key: value.clone() for key, value in buffers.items()}

    def loss(parameters, buffers, x, y):
        return functional.cross_entropy(torch.func.functional_call(members[0], (parameters, buffers), (x,)), y)

    gradients = torch.func.vmap(torch.func.grad(loss))(parameters, buffers, x, y)
    for i, net in enumerate(members):
        functional.cross_entropy(net(x[i]), y[i]).backward()
        for key, parameter in net.named_parameters():
            torch.testing.assert_close(gradients[key][i], parameter.grad, msg=key)
        for key, buffer in net.named_buffers():
            torch.testing.assert_close(buffers[key][i], buffer, msg=key)


def test_names_shapes_and_options_are_checked():
    with pytest.raises(ValueError, match=r"name must be one of mlp, table, cnn, resnet8, .*, got 'vgg'"):
        make("vgg")
    with pytest.raises(ValueError, match=r"got 'mpl' \(did you mean 'mlp'\?\)"):
        make("mpl")
    with pytest.raises(ValueError, match="shape must be given for 'mlp'"):
        make("mlp")
    with pytest.raises(TypeError, match="'mlp' has no option depth; its options are: hidden, dropout, batch_norm"):
        make("mlp", shape=(4,), depth=3)


def test_a_network_of_one_s_own_by_name(monkeypatch):
    def build(classes, shape):
        return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], classes))

    monkeypatch.setitem(NETS, "own", build)
    assert usual_shape("own") is None
    assert make("own", 3, (5,))(torch.zeros(2, 5)).shape == (2, 3)


def bn(key):
    return [f"{key}.{part}" for part in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]


def test_keys_of_the_networks_that_nobody_published():
    """Runs on disk hold these names: a change would leave them unreadable. The others: test_resnet, test_wide."""
    keys = {name: list(make(name, shape=SHAPES[name]).state_dict()) for name in ("mlp", "cnn", "resnet8")}
    assert keys["mlp"] == [f"{key}.{part}" for key in ("body.1", "body.3", "head") for part in ("weight", "bias")]
    stages = [key for i in (0, 4, 8) for key in (f"body.{i}.weight", *bn(f"body.{i + 2}"))]
    assert keys["cnn"] == [*stages, "head.weight", "head.bias"]
    expected = ["conv1.weight", *bn("bn1")]
    for i in (1, 2, 3):
        block = f"layer{i}.0"
        for j in (1, 2):
            expected += [f"{block}.conv{j}.weight", *bn(f"{block}.bn{j}")]
        if i > 1:
            expected += [f"{block}.shortcut.0.weight", *bn(f"{block}.shortcut.1")]
    assert keys["resnet8"] == [*expected, "linear.weight", "linear.bias"]


def test_usual_shapes():
    assert usual_shape("cnn") == (1, 28, 28)
    assert {usual_shape(name) for name in ("resnet8", "resnet18", "wrn28-4")} == {(3, 32, 32)}
    assert {usual_shape(name) for name in ("resnet34", "resnet50", "resnet18-imagenet")} == {(3, 224, 224)}
