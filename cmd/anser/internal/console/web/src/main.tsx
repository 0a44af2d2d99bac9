import { createRoot } from "react-dom/client";
import { App } from "./app";
import { refreshSession } from "./session";
import { follow } from "./store";
import "./style.css";

const root = document.getElementById("root");
if (root) {
	refreshSession().then(follow);
	createRoot(root).render(<App />);
}
