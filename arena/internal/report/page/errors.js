// What goes wrong in this page is counted on its root element, where a test and a curious reader see it.
const root = document.documentElement;
root.dataset.errors = "0";
function failed() { root.dataset.errors = String(Number(root.dataset.errors) + 1); }
addEventListener("error", failed);
addEventListener("unhandledrejection", failed);
addEventListener("securitypolicyviolation", failed);
root.classList.add("scripts");

