"""The pictures of the guide "Explore a model", taken in headless Chromium.

    python docs/guides/make_explorer_pictures.py

Needs selenium, and the distribution's chromium with its chromedriver.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

import decision_machines as dm

HERE = Path(__file__).parent / "images"


def take(
    browser, page: Path, name: str, width: int, script: str = "", height: int | None = None
) -> None:
    """Open a page, run a script in it, and save a picture of all of it, or of its first window."""
    browser.get(page.as_uri())
    browser.execute_script(script)
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait(browser)
    size["height"] = height or browser.execute_script(
        "return document.documentElement.scrollHeight"
    )
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait(browser)
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {})
    (HERE / name).write_bytes(base64.b64decode(found["data"]))


def wait(browser) -> None:
    browser.execute_async_script("setTimeout(arguments[0], 4000)")


def main() -> None:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    data = load_breast_cancer(as_frame=True)
    y = data.target_names[data.target]
    model = GradientBoostingClassifier(n_estimators=60, max_depth=3, random_state=0)
    heat = (
        "const field = document.getElementById('tau'); field.value = '2';"
        "field.dispatchEvent(new Event('input'))"
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        dm.figure_one().explore(page, [[2.0, 1.0, 2.0, 2.0]])
        take(browser, page, "explorer-figure-one.png", 1400)
        close = "document.getElementById('how-close').click();document.activeElement.blur();"
        dark = "document.getElementById('theme').click();"
        take(browser, page, "explorer-soft.png", 1400, dark + close + heat)
        machine = dm.convert(model.fit(data.data, y))
        machine.explore(page, data.data.iloc[::12], y[::12], title="Breast cancer, 60 trees")
        take(browser, page, "explorer-forest.png", 1400, close, 900)
    browser.quit()


if __name__ == "__main__":
    main()
