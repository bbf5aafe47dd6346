// Runs before the first paint, so that a chosen theme does not flash. Without a choice the system theme
// applies.
try {
  const theme = localStorage.getItem("troupe.theme")
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme
} catch {
  // Without storage the system theme applies.
}
