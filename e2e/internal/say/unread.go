package say

import (
	"context"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// unread is an exporter of metrics that drops them.
type unread struct{}

func (unread) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (unread) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

func (unread) Export(context.Context, *metricdata.ResourceMetrics) error { return nil }
func (unread) ForceFlush(context.Context) error                          { return nil }
func (unread) Shutdown(context.Context) error                            { return nil }
