package otel

import sdktrace "go.opentelemetry.io/otel/sdk/trace"

var ServerOf = serverOf

// IsDirect reports whether the SDK did not make a span.
func IsDirect(s sdktrace.ReadOnlySpan) bool {
	_, ok := s.(*directSpan)
	return ok
}
