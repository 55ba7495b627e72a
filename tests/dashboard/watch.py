"""Pages under watch: no dialog opens by itself, no script fails, no rule of the page's policy is broken, and nothing is
asked of any other server."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

_LISTEN = """
window.broken = [];
document.addEventListener("securitypolicyviolation", (event) => window.broken.push(event.violatedDirective));
"""


class Watch:
    """Pages of one test."""

    def __init__(self, browser: Browser, patience: float) -> None:
        self._browser = browser
        self._patience = patience
        self._contexts: list[BrowserContext] = []
        self.faults: list[str] = []
        self.hosts: set[str] = set()

    def open(self, **options: Any) -> Page:
        """A page in a browser profile of its own."""
        given = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light", **options}
        context = self._browser.new_context(**given)
        context.set_default_timeout(self._patience)
        context.add_init_script(_LISTEN)
        self._contexts.append(context)
        page = context.new_page()
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("request", self._request)
        return page

    def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        # A refusal that a test provokes is reported here, too; it is no fault of the page.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.faults.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        self.hosts.add(urlsplit(request.url).netloc)

    def close(self) -> None:
        """End all pages, and say what was wrong with them."""
        for context in self._contexts:
            for page in context.pages:
                if page.url.startswith("http"):
                    self.faults += [f"policy: {rule}" for rule in page.evaluate("window.broken || []")]
            context.close()
        assert self.faults == []
        assert len({host for host in self.hosts if host}) <= 1, self.hosts


def settled(page: Page) -> None:
    """The page is whole, its script listens, and everything that loads by itself is there."""
    page.wait_for_function(
        "() => document.readyState === 'complete' && !document.querySelector('[aria-busy], [data-state=loading]')"
    )
