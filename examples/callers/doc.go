// Package callers has programs in several languages that call one server.
package callers
