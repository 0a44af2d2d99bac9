package prometheus

import (
	"strings"
	"unicode/utf8"

	prom "github.com/prometheus/client_golang/prometheus"
)

// family is a metric with its labels.
type family struct {
	name   string
	help   string
	labels []string
	kind   prom.ValueType // 0 for a histogram
	desc   *prom.Desc
}

// families are all metrics of a [Collector].
var families []*family

func histogram(name, help string, labels ...string) *family { return newFamily(0, name, help, labels) }

func counter(name, help string, labels ...string) *family {
	return newFamily(prom.CounterValue, name, help, labels)
}

func gauge(name, help string, labels ...string) *family {
	return newFamily(prom.GaugeValue, name, help, labels)
}

func newFamily(kind prom.ValueType, name, help string, labels []string) *family {
	f := &family{name, help, labels, kind, prom.NewDesc(name, help, labels, nil)}
	families = append(families, f)
	return f
}

// The calls, from the meter. They begin with the servers' and end with the clients'.
var (
	serverDuration = histogram("anser_server_call_duration_seconds", "Duration of calls on the server, from the arrival of the request to the encoded reply.", "method", "code")
	serverCalls    = counter("anser_server_calls_total", "Calls that have ended on the server, including refused ones.", "method", "code")
	serverRefused  = counter("anser_server_calls_refused_total", "Calls that the server did not run.", "method")
	serverRetried  = counter("anser_server_calls_retried_total", "Calls that arrived as a further attempt of a caller.", "method")
	serverReplayed = counter("anser_server_calls_replayed_total", "Calls that got the reply of an earlier one with the same idempotency key.", "method")
	serverStages   = counter("anser_server_stage_seconds_total", "Time that the calls spent in a stage: queue, decode, handle, encode.", "method", "stage")
	serverRequests = counter("anser_server_request_bytes_total", "Size of the requests of calls that ran.", "method")
	serverReplies  = counter("anser_server_reply_bytes_total", "Size of the replies of calls that ran.", "method")

	clientDuration = histogram("anser_client_call_duration_seconds", "Duration of calls on the client, with all attempts.", "target", "method", "code")
	clientCalls    = counter("anser_client_calls_total", "Calls that have ended on the client.", "target", "method", "code")
	clientRetried  = counter("anser_client_calls_retried_total", "Calls with more than one attempt.", "target", "method")
)

// The state of the servers, together.
var (
	servers            = gauge("anser_servers", "Servers that have not been shut down.")
	serverConns        = gauge("anser_server_connections", "Open connections.")
	serverAccepted     = counter("anser_server_connections_accepted_total", "Connections accepted.")
	serverConnsRefused = counter("anser_server_connections_refused_total", "Connections that did not open: handshake failed, or the address is not allowed.", "reason")
	serverConnsClosed  = counter("anser_server_connections_closed_total", "Connections that the server closed because of the peer.", "reason")
	serverInFlight     = gauge("anser_server_in_flight", "Running calls, except those on the reader goroutine of their connection.")
	serverStreams      = gauge("anser_server_streams", "Open streams; they are also in flight.")
	serverMemory       = gauge("anser_server_request_memory_bytes", "Size of the large requests held now; see MaxMemory.")
	serverLimitHits    = counter("anser_server_limit_hits_total", "How often a limit was hit, by the option that sets it.", "limit")
	serverShed         = counter("anser_server_calls_shed_total", "Calls refused at MaxInFlight, MaxQueueTime or AdaptiveLimit, by priority.", "priority")
	serverLimit        = gauge("anser_server_adaptive_limit", "Calls that may run at once under an AdaptiveLimit; the method is empty for that of the server.", "method")
	serverRunning      = gauge("anser_server_adaptive_limit_running", "Calls that have a place under an AdaptiveLimit.", "method")
	serverWaiting      = gauge("anser_server_adaptive_limit_waiting", "Calls that wait for a place under an AdaptiveLimit.", "method")
	serverCancelled    = counter("anser_server_calls_cancelled_total", "Calls that their callers cancelled while they ran.")
	serverPanics       = counter("anser_server_panics_total", "Calls whose handler or codec panicked.")
	serverHandoffs     = counter("anser_server_handoffs_total", "Handlers that blocked the reader goroutine of their connection and were moved off it.")
	serverDenied       = counter("anser_server_calls_denied_total", "Calls and streams that the authorizer did not allow.")
	serverCutOff       = counter("anser_server_calls_cut_off_total", "Calls and streams ended while open because the rights of their client had ended.")
	serverStrangers    = counter("anser_server_credentials_refused_total", "Credentials and certificates that were not accepted.", "reason")
	serverKeys         = gauge("anser_server_idempotency_keys", "Idempotency keys that are remembered.")
	serverKeyBytes     = gauge("anser_server_idempotency_bytes", "Size of the remembered keys and replies.")
	serverAliases      = counter("anser_server_deprecated_alias_calls_total", "Calls under an alias given with DeprecatedAlias.", "alias")
)

// The state of the clients, together for each target.
var (
	clients            = gauge("anser_clients", "Clients that have not been closed.", "target")
	clientInstances    = gauge("anser_client_instances", "Instances by state: connected, idle, down, ejected, outside (of the subset).", "target", "state")
	clientHeld         = gauge("anser_client_instances_held", "Instances that are no longer listed, but kept, as too many were removed at once.", "target")
	clientInFlight     = gauge("anser_client_in_flight", "Attempts in flight.", "target")
	clientBreakers     = gauge("anser_client_breakers", "Breakers that are not closed, by state: open, half_open.", "target", "state")
	clientHealth       = counter("anser_client_health_changes_total", "Changes of the health of instances.", "target", "change")
	clientUpdated      = gauge("anser_client_registry_updated_timestamp_seconds", "When the registry last gave a list of instances; the oldest one of several clients.", "target")
	clientOutage       = gauge("anser_client_registry_outage_seconds", "How long the registry has been unreachable; 0 if it is reachable.", "target")
	clientSnapshot     = gauge("anser_client_registry_snapshot", "Clients whose list of instances was loaded from disk.", "target")
	clientBackups      = counter("anser_client_backups_total", "Second attempts of calls with the mode Backup.", "target")
	clientBackupsWon   = counter("anser_client_backups_won_total", "Second attempts whose reply came first.", "target")
	clientLater        = gauge("anser_client_failback_waiting", "Calls that wait to be retried in the background.", "target")
	clientGivenUp      = counter("anser_client_failback_given_up_total", "Calls that were retried in the background in vain, or found no room to wait.", "target")
	clientIgnored      = counter("anser_client_calls_ignored_total", "Calls with the mode Failsafe that failed and returned nil.", "target")
	clientRules        = gauge("anser_client_rules_version", "Version of the traffic rules in force; the oldest one of several clients.", "target")
	clientRulesTrouble = gauge("anser_client_rules_trouble", "Clients that cannot read newer traffic rules, or do not follow the ones that there are.", "target")
)

// metric returns a sample of the family. The values of the labels are clean.
func (f *family) metric(value float64, labels ...string) prom.Metric {
	return prom.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

// maxLabel is the size of a label's value, in bytes, from which on it is cut.
const maxLabel = 256

// clean returns a valid value of a label: UTF-8 that is not too long. Names of methods come from
// callers.
func clean(value string) string {
	if len(value) > maxLabel {
		end := maxLabel
		for end > maxLabel-utf8.UTFMax && !utf8.RuneStart(value[end]) {
			end--
		}
		value = value[:end] + "…"
	}
	return strings.ToValidUTF8(value, "\uFFFD")
}
