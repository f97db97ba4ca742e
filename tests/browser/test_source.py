"""The rows above every page: what a link brings in goes along to other pages, and survives a reload there."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import open_page, settle


def test_what_the_link_brought_in_goes_along(page: Page) -> None:
    open_page(page, "/?task=Copy&source-copy=3+4+5")
    page.get_by_role("link", name="Masks").click()
    page.wait_for_url("**/masks?**")
    for _ in range(2):
        settle(page)
        expect(page.get_by_label("Yours: symbols 3 to 11")).to_have_value("3 4 5")
        expect(page.get_by_role("radio", name="Copy")).to_be_checked()
        page.reload()
