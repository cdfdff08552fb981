// Sets the chosen theme before the first paint; without a choice the system's holds.
(() => {
  try {
    const theme = localStorage.getItem("tidemark.theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    // storage is blocked: the system's theme it is
  }
})();
