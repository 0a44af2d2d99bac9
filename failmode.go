package anser

// FailMode says what the client does with an attempt that failed, or how it makes several at once.
type FailMode uint8

// The fail modes. What may be tried again at all depends on the outcome, in every mode: a call whose
// outcome is unknown is never sent twice unless its method is idempotent or it has an [IdempotencyKey].
// That there is no instance is an error in every mode. docs/governance/failmodes.md tells more.
const (
	// Failover tries another instance. It is the default.
	Failover FailMode = iota
	// Failfast gives up at once.
	Failfast
	// Failtry tries the same instance.
	Failtry
	// Failsafe is Failover, and a call that fails all the same returns nil with a reply that is zero; the
	// error goes to the client's log. Errors remain errors where no instance was found, or where the
	// request cannot be encoded. Interceptors see every error.
	Failsafe
	// Failback makes one attempt. A call that fails in a way that it may be sent again is queued, tried
	// again in the background until it succeeds or [FailbackLimits] end it, and returns an error at once
	// that matches [ErrQueued]. Its reply goes nowhere.
	Failback
	// Backup makes a second attempt at another instance when the first one takes longer than 95 % of the
	// method's calls do, uses the reply that comes first, and cancels the other attempt. It is for
	// idempotent methods: with others, and where an attempt fails, it is Failover. See [BackupShare] and
	// [BackupAfter].
	Backup
	// Fork calls several instances at once, uses the first reply, and cancels the other attempts. The method
	// must be known to be idempotent. See [Forks].
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

// elsewhere reports whether the mode tries another instance after one failed.
func (m FailMode) elsewhere() bool { return m != Failfast && m != Failtry }

// inside is the mode that a call has inside of the interceptors.
func (m FailMode) inside() FailMode {
	switch m {
	case Failsafe:
		return Failover
	case Failback:
		return Failfast
	}
	return m
}
