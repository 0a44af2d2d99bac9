package anser

// FailMode selects how the client handles a failed attempt, or whether it makes several at once.
type FailMode uint8

// The fail modes. In every mode the outcome decides whether a call may be sent again: a call whose
// outcome is unknown is never sent twice unless its method is idempotent or it has an
// [IdempotencyKey]. In every mode a call without any instance fails. See
// docs/governance/failmodes.md.
const (
	// Failover tries another instance. It is the default.
	Failover FailMode = iota
	// Failfast gives up at once.
	Failfast
	// Failtry tries the same instance.
	Failtry
	// Failsafe is Failover, but a call that fails nevertheless returns nil and a zero reply. The
	// client's log has the error at the level Debug, and one of them a minute as a warning with
	// their number. It remains an error if no instance was found or the request
	// cannot be encoded. Interceptors see every error.
	Failsafe
	// Failback makes one attempt. A call that fails and may be sent again is queued and returns an
	// error that matches [ErrQueued]. It is retried in the background until it succeeds or
	// [FailbackLimits] end it. Its reply is dropped.
	Failback
	// Backup makes a second attempt at another instance when the first one takes longer than 95 %
	// of the method's calls, uses the reply that arrives first, and cancels the other attempt. It
	// is for idempotent methods: for others, for calls with an [IdempotencyKey], and when an
	// attempt fails, it is Failover. See [BackupShare] and [BackupAfter].
	Backup
	// Fork calls several instances at once, uses the first reply, and cancels the other attempts.
	// The method must be known to be idempotent, and the call must have no [IdempotencyKey]. See
	// [Forks].
	Fork
)

var failModeNames = [...]string{"failover", "failfast", "failtry", "failsafe", "failback", "backup", "fork"}

// String returns the name of the mode in lower case.
func (m FailMode) String() string {
	if int(m) < len(failModeNames) {
		return failModeNames[m]
	}
	return "unknown fail mode"
}

// elsewhere reports whether the mode tries another instance after a failed attempt.
func (m FailMode) elsewhere() bool { return m != Failfast && m != Failtry }

// inside returns the mode of a call inside the interceptors.
func (m FailMode) inside() FailMode {
	switch m {
	case Failsafe:
		return Failover
	case Failback:
		return Failfast
	}
	return m
}
