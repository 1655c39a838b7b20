"""Uneven devices that are there at night: who waits for them, and who is heard."""

import torch

from asyncfeded import (
    Availability,
    Device,
    DeviceModel,
    LocalTraining,
    Virtual,
    federate,
    rules,
)

DAY = 24.0  # a day of 24 seconds, so that an hour takes a second

torch.manual_seed(0)
names = [f"phone-{number}" for number in range(12)]
inputs = {name: torch.randn(200, 10) + index / 6 for index, name in enumerate(names)}
datasets = {name: (x, x[:, :3].argmax(dim=1)) for name, x in inputs.items()}

# Every third phone is four times as slow as the others; transfers take time too.
epoch_seconds = {name: 0.08 if index % 3 == 0 else 0.02 for index, name in enumerate(names)}
devices = DeviceModel(
    {name: Device(seconds, 10 * seconds) for name, seconds in epoch_seconds.items()},
    bytes_per_second=50_000.0,
    suspension=0.05,
)
nights = Availability.day_and_night(names, share=1 / 3, zones=0.5, day_seconds=DAY)
for hour in (0, 6, 12, 18):
    there = [name for name in names if nights.is_there(name, 2 * DAY + hour)]
    print(f"{hour:2} h: {len(there):2} of {len(names)} phones are there")

for rule in (rules.fedavg(), rules.fedbuff(buffer_size=4), rules.delay_adaptive()):
    torch.manual_seed(1)
    result = federate(
        torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)),
        datasets,
        rule=rule,
        world=Virtual(devices=devices, availability=nights),
        training=LocalTraining(learning_rate=0.005),
        seconds=4 * DAY,
        evaluate_every=DAY,
    )
    days = " ".join(f"{value:.2f}" for value in result.metric("accuracy"))
    print(f"\n{rule.name:14}  accuracy per day {days}")
    slow = [result.clients[name].updates for name in names[::3]]
    fast = [result.clients[name].updates for name in names if name not in names[::3]]
    print(f"  updates of a slow phone {sum(slow) / 4:.0f}, of a fast phone {sum(fast) / 8:.0f}")
    print(f"  {result.lost_rounds['suspended']} rounds lost")
