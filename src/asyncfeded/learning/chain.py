"""Reading a torch module as a chain of fully connected layers, if it is such a chain.

The module's own `forward` is traced, so the user's own class works as well as `nn.Sequential`: all
that counts is what happens to the input, step by step.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.dense import Activation


class Layer(NamedTuple):
    """A fully connected layer and what follows it."""

    linear: nn.Linear
    activation: Activation


class Chain(NamedTuple):
    """Layers in the order of their use, and whether inputs are flattened on the way."""

    layers: list[Layer]
    flattens: bool


ACTIVATIONS: Mapping[object, Activation] = {
    **dict.fromkeys((nn.ReLU, torch.relu, nn.functional.relu, "relu"), Activation.RELU),
    **dict.fromkeys((nn.Tanh, torch.tanh, nn.functional.tanh, "tanh"), Activation.TANH),
    **dict.fromkeys(
        (nn.Sigmoid, torch.sigmoid, nn.functional.sigmoid, "sigmoid"), Activation.SIGMOID
    ),
}
FLATTENINGS: tuple[object, ...] = (torch.flatten, "flatten")
CAN_BE = "a chain of nn.Linear, each followed by ReLU, Tanh, Sigmoid or nothing"


def read_chain(module: nn.Module) -> Chain:
    """The layers of a module; if it is no chain, a SettingError names the obstacle."""
    traced = _traced(module)
    layers: list[Layer] = []
    flattens = False
    before: fx.Node | None = None
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            if before is not None:
                raise _refusal("it takes more than one input")
        elif node.op == "output":
            if node.args[0] is not before or not layers:
                raise _refusal("its output is not that of its last layer")
            break
        elif node.all_input_nodes != [before]:
            raise _refusal(f"{_name(node)!r} takes more than the output of the layer before it")
        else:
            flattens |= not _add(layers, node, traced)
        before = node
    _check_parameters(module, layers)
    return Chain(layers, flattens)


def _traced(module: nn.Module) -> fx.GraphModule:
    """What a module does with its input while it is trained."""
    training = module.training
    module.train()
    try:
        # Wrapped, so that a layer on its own is a step too and is not traced into.
        return fx.symbolic_trace(nn.Sequential(module))
    except Exception as error:
        raise _refusal(f"its forward cannot be followed ({error})") from error
    finally:
        module.train(training)


def _add(layers: list[Layer], node: fx.Node, traced: fx.GraphModule) -> bool:
    """Add a step of the forward pass to the layers; False if it flattens."""
    applied: Any = node.target
    if node.op == "call_module":
        applied = traced.get_submodule(str(node.target))
        if _has_hooks(applied):
            raise _refusal(f"{_name(node)!r} has hooks")
        if type(applied) is nn.Linear:
            layers.append(Layer(applied, Activation.NONE))
            return True
        if type(applied) is nn.Identity or _flattens(applied):
            return type(applied) is nn.Identity
        applied = type(applied)
    elif applied in FLATTENINGS and _flattening_arguments(node) == (1, -1):
        return False
    activation = ACTIVATIONS.get(applied)
    if activation is None:
        name = getattr(applied, "__name__", applied)
        is_module = node.op == "call_module"
        raise _refusal(f"{_name(node)!r} is a {name}" if is_module else f"it calls {name!r}")
    if not layers or layers[-1].activation is not Activation.NONE:
        raise _refusal(f"{_name(node)!r} does not follow a fully connected layer")
    layers[-1] = layers[-1]._replace(activation=activation)
    return True


def _name(node: fx.Node) -> str:
    """The name of a step in the user's module."""
    return str(node.target).removeprefix("0.") if node.op == "call_module" else node.name


def _flattens(module: nn.Module) -> bool:
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


def _flattening_arguments(node: fx.Node) -> tuple[object, object]:
    given = dict(zip(("start_dim", "end_dim"), node.args[1:], strict=False)) | node.kwargs
    return given.get("start_dim", 0), given.get("end_dim", -1)


def _has_hooks(module: nn.Module) -> bool:
    hooks: Callable[[nn.Module], Any] = operator.attrgetter(
        "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
    )
    return any(hooks(module))


def _check_parameters(module: nn.Module, layers: list[Layer]) -> None:
    used = [id(parameter) for layer in layers for parameter in layer.linear.parameters()]
    if len(set(used)) < len(used):
        raise _refusal("two of its layers share a parameter")
    for name, parameter in module.named_parameters():
        if id(parameter) not in used:
            raise _refusal(f"parameter {name!r} belongs to no fully connected layer")
        if not parameter.requires_grad:
            raise _refusal(f"parameter {name!r} is frozen")
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise _refusal(f"parameter {name!r} has hooks")
    width = layers[0].linear.in_features
    for linear, _ in layers:
        inputs, outputs = linear.in_features, linear.out_features
        bias_fits = linear.bias is None or linear.bias.shape == (outputs,)
        if inputs != width or linear.weight.shape != (outputs, inputs) or not bias_fits:
            raise _refusal(
                f"a layer of {inputs} inputs and {outputs} outputs does not fit its parameters "
                "or the layer before it"
            )
        width = outputs
    for name, _ in module.named_buffers():
        raise _refusal(f"it has a buffer {name!r}")


def _refusal(what: str) -> SettingError:
    return SettingError(f"kernel 'compiled' needs {CAN_BE}; given a module that is none: {what}")
