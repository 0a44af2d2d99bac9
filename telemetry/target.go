package telemetry

import "github.com/anser-rpc/anser/internal/redact"

// TargetName returns a target as a [Meter] names it: without the user and the password in it.
func TargetName(target string) string { return redact.Target(target) }
