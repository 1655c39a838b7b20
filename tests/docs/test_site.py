"""The site of the documentation: complete, without any other host, and readable on a phone."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

import asyncfeded

ROOT = Path(__file__).parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-sync", "--no-first-run", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update"),
)
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 900}
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?(https?:)?//")
PAGES = ("index.html", "rules.html", "cost.html", "decisions.html", "reference/rules.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a link or an anchor that leads nowhere is an error."""
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        assert not os.environ.get("ASYNCFEDED_NEEDS_BROWSER"), "no chromium on the path"
        pytest.skip("no chromium on the path")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET), timeout=0)
        yield found
        found.close()


def opened(browser: Browser, page: Path, size: ViewportSize) -> tuple[Page, list[str]]:
    """A page in the browser, and every address that it asks for."""
    seen = browser.new_page(viewport=size)
    asked: list[str] = []
    seen.on("request", lambda request: asked.append(request.url))
    seen.set_default_timeout(0)  # the limit of every test is the only one
    seen.goto(page.as_uri())
    return seen, asked


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []


def test_the_reference_has_everything_public(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    modules = {"events", "flower", "guards", "partition", "rules", "__version__"}
    missing = [
        name
        for name in set(asyncfeded.__all__) - modules
        if f'id="{getattr(asyncfeded, name).__module__}.{name}"' not in pages
        and f'id="asyncfeded.{name}"' not in pages
    ]
    assert missing == []
    assert [
        name for name in asyncfeded.flower.__all__ if f'id="asyncfeded.flower.{name}"' not in pages
    ] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_no_other_host_and_fits_a_phone(
    site: Path, browser: Browser, name: str
) -> None:
    page, asked = opened(browser, site / name, PHONE)
    page.wait_for_load_state("networkidle")
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.close()


def test_the_search_finds_a_word_without_a_server(site: Path, browser: Browser) -> None:
    page, asked = opened(browser, site / "index.html", DESK)
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("hyperparameters")
    page.locator(".md-search-result__link").first.wait_for()
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    page.close()
