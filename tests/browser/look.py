"""Opens pages of `attest report` in Chromium: look.py PAGE… FOLDER (see README.md)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTHS = {"desktop": 1280, "phone": 390}


def chromium():
    """Path of a Chromium, or None for Playwright's own, which is then installed."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if found is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"], check=True)
    return found


def look(browser, page_file, folder):
    """Looks at one page at every width and in print; returns what is wrong."""
    wrong = []
    address = page_file.resolve().as_uri()
    for name, width in WIDTHS.items():
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: wrong.append(f"{name}: console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"{name}: error: {error}"))
        page.on("request", lambda request: request.url in (address, "data:,") or wrong.append(f"{name}: asks for {request.url}"))
        page.goto(address)
        needed = page.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            wrong.append(f"{name}: {needed} px wide in {width}")
        spilling = page.evaluate(
            """() => [...document.querySelectorAll('main *')]
                .filter(e => !e.closest('svg') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0
                             && getComputedStyle(e).display !== 'inline')
                .map(e => e.tagName + ' ' + e.textContent.trim().slice(0, 40))"""
        )
        wrong += [f"{name}: {element} spills over" for element in spilling]
        page.screenshot(path=folder / f"{page_file.stem}-{name}.png", full_page=True)
        if name == "desktop":
            page.pdf(path=folder / f"{page_file.stem}.pdf", format="A4", prefer_css_page_size=True)
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 700, "height": 1000})
            page.screenshot(path=folder / f"{page_file.stem}-print.png", full_page=True)
        page.close()
    return wrong


def main():
    *pages, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for page_file in pages:
            wrong = look(browser, page_file, folder)
            failed |= bool(wrong)
            print(f"{page_file}: {'; '.join(wrong) or 'fits, silent, self-contained'}")
        browser.close()
    sys.exit(failed)


if __name__ == "__main__":
    main()
