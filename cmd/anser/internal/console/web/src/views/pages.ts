// The pages. Those that the first view does not need are loaded when they are opened.
import { lazy } from "react";

export { Overview } from "./overview";
export { Services as ServicesPage } from "./services";
export const Service = lazy(() => import("./service").then((m) => ({ default: m.ServicePage })));
export const Method = lazy(() => import("./method").then((m) => ({ default: m.MethodPage })));
export const InstancesView = lazy(() => import("./instances").then((m) => ({ default: m.InstancesPage })));
export const CallsPage = lazy(() => import("./calls").then((m) => ({ default: m.Calls })));
export const Trace = lazy(() => import("./trace").then((m) => ({ default: m.TracePage })));
export const ChangesPage = lazy(() => import("./changes").then((m) => ({ default: m.ChangesPage })));
export const CanariesPage = lazy(() => import("../operate/canary").then((m) => ({ default: m.Canaries })));
export const AuditPage = lazy(() => import("./audit").then((m) => ({ default: m.Audit })));
export const FoldersPage = lazy(() => import("../files/browser").then((m) => ({ default: m.Folders })));
export const FilesView = lazy(() => import("../files/browser").then((m) => ({ default: m.FilesPage })));
export const LoginPage = lazy(() => import("./login").then((m) => ({ default: m.Login })));
export const RegistriesPage = lazy(() => import("./registries").then((m) => ({ default: m.Registries })));
export const ConnectionsPage = lazy(() => import("./connections").then((m) => ({ default: m.Connections })));
