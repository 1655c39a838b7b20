"""The report in a real browser: drawn, quiet, and without the network."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from asyncfeded_paper import griewank

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-sync", "--no-first-run", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update"),
)
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 900}
ALL_CHARTS_FIT = """
[...document.querySelectorAll(".panel")].every((panel) => {
  const chart = panel.querySelector(".main-svg");
  return chart && Math.abs(chart.clientWidth - panel.clientWidth) <= 1;
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        assert not os.environ.get("ASYNCFEDED_NEEDS_BROWSER"), "no chromium on the path"
        pytest.skip("no chromium on the path")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET), timeout=0)
        yield found
        found.close()


class Seen:
    """A page of the report, with what it said and asked for."""

    def __init__(self, browser: Browser, report: Path, size: ViewportSize) -> None:
        self.page: Page = browser.new_page(viewport=size)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_default_timeout(0)  # the limit of every test is the only one
        self.page.goto(report.as_uri())
        self.page.wait_for_function("document.readyState === 'complete'")
        self.page.wait_for_function(ALL_CHARTS_FIT)


def drawn_width(page: Page, panel: int) -> float:
    """How wide a chart is drawn, once it has been fitted to its panel."""
    box = page.locator(".panel").nth(panel).locator(".main-svg").first.bounding_box()
    assert box is not None
    return box["width"]


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_all_charts_are_drawn_in_the_width_there_is(
    browser: Browser, small_evaluation: Path, size: ViewportSize
) -> None:
    seen = Seen(browser, small_evaluation / "report.html", size)
    panels = seen.page.locator(".panel")
    # The agreement, Figures 1 (2), 2, the authors' curves (2), 3 (2), 4, its steering (2) and 5.
    assert panels.count() == 12
    assert panels.nth(0).locator(".heatmaplayer text").count() >= 15  # 5 rules at 3 values of P
    for index in range(panels.count()):
        drawn = panels.nth(index).locator(".scatterlayer path.js-line")
        assert index == 0 or drawn.count() >= 4
        box = panels.nth(index).bounding_box()
        assert box is not None
        assert 250 < box["width"] <= size["width"]
        assert drawn_width(seen.page, index) == pytest.approx(box["width"], abs=1)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert seen.said == []
    assert [url for url in seen.asked if not url.startswith(("file:", "data:"))] == []


def test_no_button_of_a_chart_covers_its_title(browser: Browser, small_evaluation: Path) -> None:
    seen = Seen(browser, small_evaluation / "report.html", PHONE)
    panels = seen.page.locator(".panel")
    for index in range(panels.count()):
        title = panels.nth(index).locator("h3").bounding_box()
        buttons = panels.nth(index).locator(".modebar").bounding_box()
        plot = panels.nth(index).locator(".nsewdrag").first.bounding_box()
        assert title is not None
        assert buttons is not None
        assert plot is not None
        assert title["y"] + title["height"] <= buttons["y"]
        assert buttons["y"] + buttons["height"] <= plot["y"] + 1
        assert plot["width"] > 150


def test_figure_1_has_equal_axes(browser: Browser, small_evaluation: Path) -> None:
    seen = Seen(browser, small_evaluation / "report.html", PHONE)
    plot = seen.page.locator("#figure-1 .nsewdrag").first.bounding_box()
    assert plot is not None
    width, height = griewank.RIGHT - griewank.LEFT, griewank.TOP - griewank.BOTTOM
    assert plot["width"] / plot["height"] == pytest.approx(width / height, rel=0.02)


def test_on_paper_images_take_the_place_of_charts(browser: Browser, small_evaluation: Path) -> None:
    seen = Seen(browser, small_evaluation / "report.html", DESK)
    assert not seen.page.locator("img.printed").first.is_visible()
    seen.page.emulate_media(media="print")
    assert not seen.page.locator(".panels").first.is_visible()
    images = seen.page.locator("img.printed")
    assert images.count() == 8
    for index in range(images.count()):
        assert images.nth(index).is_visible()
        assert images.nth(index).evaluate("image => image.naturalWidth") > 400
