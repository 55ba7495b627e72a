// Before the page is drawn: the choice between light and dark that was made here earlier.
(() => {
  try {
    const chosen = localStorage.getItem("leporello-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* No storage: the system's choice holds. */ }
})();
