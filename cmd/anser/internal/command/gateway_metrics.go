package command

import (
	"sync/atomic"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/anser-rpc/anser/gateway"
)

// gatewayStats collects the counters of a gateway, once there is one.
type gatewayStats struct {
	of atomic.Pointer[gateway.Gateway]
}

func gatewayDesc(name, help string, labels ...string) *prom.Desc {
	return prom.NewDesc("anser_gateway_"+name, help, labels, nil)
}

// gatewayCounters are the counters of [gateway.Stats].
var gatewayCounters = []struct {
	desc *prom.Desc
	of   func(*gateway.Stats) int64
}{
	{gatewayDesc("calls_total", "Calls and streams that were passed on."), func(s *gateway.Stats) int64 { return s.Calls }},
	{gatewayDesc("calls_failed_total", "Of these, calls with an error, over other protocols than Anser's."), func(s *gateway.Stats) int64 { return s.Failed }},
	{gatewayDesc("calls_unreachable_total", "Of the failed calls, those that no instance could take."), func(s *gateway.Stats) int64 { return s.Unreachable }},
	{gatewayDesc("calls_refused_total", "Calls that were not passed on."), func(s *gateway.Stats) int64 { return s.Refused }},
	{gatewayDesc("undescribed_total", "Changes after which a service, or a method, could not be served."), func(s *gateway.Stats) int64 { return s.Undescribed }},
	{gatewayDesc("proxied_requests_total", "Requests that were passed on to HTTP servers."), func(s *gateway.Stats) int64 { return s.Proxied }},
	{gatewayDesc("proxied_requests_failed_total", "Of these, requests without an answer."), func(s *gateway.Stats) int64 { return s.ProxyFailed }},
	{gatewayDesc("reloads_total", "Configurations that were put in force after the first."), func(s *gateway.Stats) int64 { return s.Reloads }},
	{gatewayDesc("reloads_refused_total", "Configurations with a mistake; the one before stayed in force."), func(s *gateway.Stats) int64 { return s.ReloadsRefused }},
}

var gatewayServices = gatewayDesc("services", "Services by state: served; problem, if the service could not be asked what it serves.", "state")

// Describe implements [prom.Collector].
func (*gatewayStats) Describe(ch chan<- *prom.Desc) {
	for _, c := range gatewayCounters {
		ch <- c.desc
	}
	ch <- gatewayServices
}

// Collect implements [prom.Collector].
func (g *gatewayStats) Collect(ch chan<- prom.Metric) {
	of := g.of.Load()
	if of == nil {
		return
	}
	s := of.Stats()
	for _, c := range gatewayCounters {
		ch <- prom.MustNewConstMetric(c.desc, prom.CounterValue, float64(c.of(&s)))
	}
	problems := 0
	for i := range s.Services {
		if s.Services[i].Problem != "" {
			problems++
		}
	}
	ch <- prom.MustNewConstMetric(gatewayServices, prom.GaugeValue, float64(len(s.Services)-problems), "served")
	ch <- prom.MustNewConstMetric(gatewayServices, prom.GaugeValue, float64(problems), "problem")
}
