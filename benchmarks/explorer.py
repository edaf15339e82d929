"""How fast the explorer page of a forest opens, and how smoothly it follows a slider.

Writes the page of a random forest, opens it in headless Chromium, and prints as JSON lines: bytes
of the page, seconds from navigation to the page being ready, milliseconds of a change of x (all
trees evaluated, everything redrawn) hard and soft, and of showing another tree. Times are of the
wall clock, and so of everything else that runs; `cpu` is the time of the page's own thread.

    python benchmarks/explorer.py --trees 500 --leaves 64
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import decision_machines as dm

MEASURE = """
const [moves, trees, soft, done] = arguments;
const times = {move: [], tree: []};
const frame = () => new Promise((go) => requestAnimationFrame(go));
const field = document.getElementById("tau");
field.value = soft ? "0.5" : "0";
field.dispatchEvent(new Event("input"));
(async () => {
  await frame(); await frame();
  const slider = document.querySelector("#features input[type=range]");
  const [low, high] = [Number(slider.min), Number(slider.max)];
  for (let i = 0; i < moves; i += 1) {
    slider.value = low + ((high - low) * ((i * 37) % moves)) / moves;
    const start = performance.now();
    slider.dispatchEvent(new Event("input"));
    await frame();
    document.getElementById("tree").getBoundingClientRect();
    times.move.push(performance.now() - start);
  }
  for (let i = 0; i < trees; i += 1) {
    const start = performance.now();
    explorer.pickTree((i * 7) % explorer.machine.nTrees);
    document.getElementById("tree").getBoundingClientRect();
    times.tree.push(performance.now() - start);
  }
  done(times);
})();
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--opens", type=int, default=5)
    options = parser.parse_args()
    X, y = make_classification(4000, options.features, n_informative=10, random_state=0)
    forest = RandomForestClassifier(
        options.trees, max_leaf_nodes=options.leaves, random_state=0, n_jobs=1
    )
    machine = dm.convert(forest.fit(X, y))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        start = time.perf_counter()
        machine.explore(page, X, y)
        row = {
            "trees": machine.n_trees,
            "leaves": machine.n_leaves,
            "megabytes": round(page.stat().st_size / 1e6, 2),
            "write_seconds": round(time.perf_counter() - start, 2),
        }
        print(json.dumps(row | measure(page, options.opens)))


def measure(page: Path, opens: int) -> dict:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chrome = webdriver.ChromeOptions()
    chrome.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        chrome.add_argument(flag)
    chrome.add_argument("--window-size=1440,1000")
    browser = webdriver.Chrome(options=chrome, service=Service(shutil.which("chromedriver")))
    try:
        ready = []
        for _ in range(opens):
            browser.get("about:blank")
            browser.get(page.as_uri())
            while not browser.find_elements("css selector", "html[data-ready]"):
                time.sleep(0.05)
            # The mark is set when the tree is drawn and the page has checked itself.
            ready.append(
                browser.execute_script(
                    "return performance.getEntriesByName('ready')[0].startTime / 1000"
                )
            )
        found = {"open_seconds": spread(ready, 2)}
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for name, soft in (("hard", False), ("soft", True)):
            for what, moves, trees in (("move", 60, 0), ("tree", 0, 20)):
                before = thread_seconds(browser)
                times = browser.execute_async_script(MEASURE, moves, trees, soft)
                cpu = 1000 * (thread_seconds(browser) - before) / (moves + trees)
                found[f"{name}_{what}_ms"] = spread(times[what], 1) | {"cpu": round(cpu, 1)}
        return found
    finally:
        browser.quit()


def thread_seconds(browser) -> float:
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def spread(values: list[float], digits: int) -> dict:
    return {
        "median": round(statistics.median(values), digits),
        "p95": round(float(np.percentile(values, 95)), digits),
    }


if __name__ == "__main__":
    main()
