package main

import (
	"context"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/server"
	"github.com/kitex-contrib/obs-opentelemetry/tracing"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// tracedShare is the share of the calls that are traced with --observe.
const tracedShare = 0.01

// observe makes Kitex's tracer record calls, and measure all of them. What it records goes nowhere.
func observe() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(tracedShare))),
		sdktrace.WithBatcher(nowhere{}),
	))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
}

func observedServer() server.Option { return server.WithSuite(tracing.NewServerSuite()) }

func observedClient() client.Option { return client.WithSuite(tracing.NewClientSuite()) }

// nowhere is an exporter of spans that drops them.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }
