"""`asyncfeded check-rule`: whether a rule keeps the contract."""

import sys

import click

BROKEN = 1


@click.command("check-rule")
@click.argument("rule", metavar="FILE.py:FACTORY")
def check_rule(rule: str) -> None:
    """Check that a rule keeps the contract: the tests that every rule of ours passes.

    A rule is named by its place, FILE.py:factory or package.module:factory, or by its name. The
    exit code is 1 if a check fails.

    \b
    Examples:
      asyncfeded check-rule my_rule.py:momentum
      asyncfeded check-rule fedbuff
    """
    from asyncfeded.cli.output import make_console, say
    from asyncfeded.experiment.hyperparameters import build_rule

    build_rule(rule, {})  # what is wrong with the factory itself is an error of usage

    from asyncfeded.contract import CHECKS

    console = make_console()
    failed = 0
    for name, check in CHECKS.items():
        try:
            check(lambda: build_rule(rule, {}))
        except AssertionError as error:
            failed += 1
            say(console, f"FAILED  {name}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a rule raises breaks the contract
            failed += 1
            say(console, f"FAILED  {name}: {type(error).__name__}: {error}")
        else:
            say(console, f"ok      {name}")
    say(console, f"{rule}: {len(CHECKS) - failed} of {len(CHECKS)} checks passed")
    sys.exit(BROKEN if failed else 0)
