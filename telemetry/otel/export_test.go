package otel

var ServerOf = serverOf
