// Before anything is painted: the theme that was chosen. Without a choice the system decides, in the style sheet.
try {
  const theme = localStorage.getItem("cairn.theme")
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme
} catch {
  // Storage is refused here: the system decides.
}
