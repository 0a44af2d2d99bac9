package command

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/internal/rawjson"
)

// callFlags are the flags of "anser call".
type callFlags struct {
	registry   sourceFlags
	tls        tlsFlags
	follow     followFlags
	metadata   []string
	timeout    time.Duration
	trailers   bool
	idempotent bool
	oneway     bool
	compress   string
	json       bool
	noCheck    bool
	stream     bool
	endless    bool // --follow
}

func newCall(s streams) *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use:   "call TARGET METHOD [JSON | - | @FILE]...",
		Short: "Call a method with a message in JSON, or open a stream",
		Long: strings.TrimSpace(`
Call a method with a message in JSON, and print its reply. Without a message {} is sent; - reads it from the standard
input, @FILE from a file. A method with several arguments takes an array of them, or an object with their names.

A stream takes any number of messages, one of the server alone a request like a call. Those from the input or a file are sent as they are read, one JSON text after the other,
and after the last one the client closes its side. Each message of the server is printed as a line of JSON. A stream may
take as long as --timeout says, or with --follow until it is interrupted.

The server is asked first what the method takes: a message with a key unknown to the method is not sent.
`) + "\n" + exitHelp,
		Example: strings.Trim(`
  anser call arith Arith.Mul '{"A": 7, "B": 8}'
  anser call 127.0.0.1:8972 Arith.Mul '{"A": 7, "B": 8}'
  anser call 127.0.0.1:8972 Math.DivMod '[38, 7]'
  anser call posts Posts.Query '{"posttype": "golang"}' | jq '.posts[].title'
  anser call posts Posts.Query @query.json --compress zstd
  anser call etcd://127.0.0.1:2379/arith Arith.Add @request.json -H tenant:blue --timeout 2s
  anser call arith.example.org:443 Arith.Mul --ca ca.pem --cert me.pem --key me.key
  jq -c .[] words.json | anser call 127.0.0.1:8972 Words.Count -
  anser call prices Prices.Watch '{"Symbol": "GOOG"}' --follow`, "\n"),
		Args:              takes(2, -1),
		ValidArgsFunction: completeTarget(&f.registry, &f.tls),
		RunE: func(c *cobra.Command, args []string) error {
			for _, typed := range args[2:] {
				if err := checkTyped(typed); err != nil {
					return err
				}
			}
			return call(c.Context(), s, &f, args[0], args[1], args[2:])
		},
	}
	f.registry.add(c)
	f.tls.add(c)
	f.follow.add(c)
	c.Flags().StringArrayVarP(&f.metadata, "header", "H", nil, "metadata to send with the message, as key:value; may be repeated")
	timeoutFlag(c, &f.timeout, 5*time.Second, "how long the call may take")
	c.Flags().BoolVar(&f.trailers, "trailers", false, "print the trailers of the reply to the standard error")
	c.Flags().BoolVar(&f.idempotent, "idempotent", false, "retry if the outcome of an attempt is unknown")
	c.Flags().BoolVar(&f.oneway, "oneway", false, "send the message without waiting for a reply; it arrives at most once")
	compressFlag(c, &f.compress)
	c.Flags().BoolVar(&f.json, "json", false, "print one object with the reply or error, the trailers and the time taken; of a stream one for each message, and a last one for its end")
	c.Flags().BoolVar(&f.noCheck, "no-check", false, "send messages with keys that the server does not describe")
	c.Flags().BoolVar(&f.stream, "stream", false, "the method is a stream; for servers that do not describe their methods")
	c.Flags().BoolVar(&f.endless, "follow", false, "do not limit the time of the stream; it ends when it is interrupted")
	return c
}

// checkTyped finds mistakes in a message on the command line, or in a file it names, before
// anything else is done.
func checkTyped(typed string) error {
	switch {
	case typed == "-":
		return nil
	case strings.HasPrefix(typed, "@"):
		if _, err := os.Stat(typed[1:]); err != nil {
			return usagef("read the message: %w", err)
		}
		return nil
	}
	return checkJSON([]byte(typed))
}

// readMessage returns the request on the command line, or in a file it names.
func readMessage(typed string, in io.Reader) (json.RawMessage, error) {
	text, err := []byte(typed), error(nil)
	switch {
	case typed == "-":
		if text, err = io.ReadAll(in); err != nil {
			return nil, fmt.Errorf("read the message: %w", err)
		}
	case strings.HasPrefix(typed, "@"):
		if text, err = os.ReadFile(typed[1:]); err != nil {
			return nil, usagef("read the message: %w", err)
		}
	}
	return text, checkJSON(text)
}

// parseMetadata parses the values of -H.
func parseMetadata(pairs []string) (anser.Metadata, error) {
	md := make(anser.Metadata)
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, ":")
		if !ok || key == "" {
			return nil, usagef("metadata %q has no key: use -H key:value", pair)
		}
		md.Set(strings.TrimSpace(key), strings.TrimSpace(value))
	}
	return md, nil
}

// callReport is the output of --json.
type callReport struct {
	Reply    json.RawMessage `json:"reply,omitempty"`
	Error    *callError      `json:"error,omitempty"`
	Trailers anser.Metadata  `json:"trailers,omitempty"`
	Micros   int64           `json:"time_us"`
}

// callError is an *anser.Error as JSON.
type callError struct {
	Code     anser.Code    `json:"code"`
	Outcome  anser.Outcome `json:"outcome"`
	Message  string        `json:"message"`
	Method   string        `json:"method"`
	Remote   bool          `json:"remote"`
	Address  string        `json:"address,omitempty"`
	Phase    string        `json:"phase,omitempty"`
	Details  []byte        `json:"details,omitempty"`
	Attempts []callAttempt `json:"attempts,omitempty"`
}

type callAttempt struct {
	Address string        `json:"address"`
	Outcome anser.Outcome `json:"outcome"`
	Message string        `json:"message"`
	Micros  int64         `json:"time_us"`
}

func describeError(e *anser.Error) *callError {
	out := &callError{
		Code: e.Code, Outcome: e.Outcome, Message: hints.Replace(e.Message), Method: e.Method, Remote: e.Remote,
		Address: e.Address, Phase: e.Phase.String(), Details: e.Details,
	}
	for _, a := range e.Attempts {
		out.Attempts = append(out.Attempts, callAttempt{a.Address, a.Outcome, a.Message, a.Duration.Microseconds()})
	}
	return out
}

func call(ctx context.Context, s streams, f *callFlags, typed, method string, messages []string) error {
	md, err := parseMetadata(f.metadata)
	if err != nil {
		return err
	}
	compressed, err := compression(f.compress)
	if err != nil {
		return err
	}
	opts, err := f.follow.options(typed, &f.registry)
	if err != nil {
		return err
	}
	c, err := dial(ctx, typed, &f.registry, &f.tls, append(opts, compressed)...)
	if err != nil {
		return err
	}
	defer c.Close()
	to := &callee{client: c, method: method}
	if to.look(ctx, f.timeout/2) {
		fmt.Fprintf(s.err, "anser: the description of the methods is over --max-message %d: the message is sent without a check, and a stream needs --stream\n", f.tls.maxMessage)
	}
	if len(md) > 0 {
		ctx = anser.WithMetadata(ctx, md)
	}
	if f.stream || to.info != nil && to.info.Stream {
		return f.converse(ctx, s, to, messages)
	}
	return f.callOnce(ctx, s, to, messages)
}

// callee is the called method, with its server's description.
type callee struct {
	client *anser.Client
	method string
	info   *anser.MethodInfo // nil if unknown
	silent *anser.Error      // the error if no instance could be asked, or nil
}

// look asks the server what the method takes. If it does not answer, the call itself shows what is
// wrong. It reports whether the answer is over the limit of the client, which the call may keep to.
func (to *callee) look(ctx context.Context, bound time.Duration) (tooLarge bool) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var list anser.MethodList
	err := to.client.Call(ctx, anser.MethodsName, new(anser.None), &list, anser.Codec(new(codec.JSON)), anser.WithFailMode(anser.Failfast))
	if err == nil {
		to.info, _ = findMethod(list.Methods, to.method)
	}
	e, ok := errors.AsType[*anser.Error](err)
	if ok && e.Outcome == anser.NotSent && len(to.client.Status().Instances) < 2 {
		to.silent = e
	}
	return ok && !e.Remote && e.Code == anser.ResourceExhausted
}

// check rejects a message with a key unknown to the method.
func (to *callee) check(f *callFlags, message []byte) error {
	if f.noCheck || to.info == nil {
		return nil
	}
	if unknown := unknownKey(&to.info.Request, message); unknown != "" {
		return usagef("%s\n\"anser describe %s %s\" shows all of them; --no-check sends the message as it is",
			unknown, to.client.Status().Target, to.method)
	}
	return nil
}

// callOnce makes a call with at most one message.
func (f *callFlags) callOnce(ctx context.Context, s streams, to *callee, messages []string) error {
	switch {
	case len(messages) > 1:
		return usagef("%q is one argument too many: %s is a call and takes one message", messages[1], to.method)
	case f.endless:
		return usagef("--follow is for streams: %s is a call", to.method)
	}
	request, err := readMessage(append(messages, "{}")[0], s.in)
	if err == nil {
		err = to.check(f, request)
	}
	if err != nil {
		return err
	}
	var reply json.RawMessage
	var trailers anser.Metadata
	sending := []anser.CallOption{anser.Codec(rawjson.Codec{}), anser.Trailer(&trailers)}
	if f.idempotent {
		sending = append(sending, anser.Idempotent())
	}
	began := time.Now()
	err = callOnce(ctx, to.client, f.timeout, func(ctx context.Context, more ...anser.CallOption) error {
		opts := slices.Concat(sending, more)
		if f.oneway {
			return to.client.Send(ctx, to.method, &request, opts...)
		}
		return to.client.Call(ctx, to.method, &request, &reply, opts...)
	})
	took := time.Since(began)
	var failed *anser.Error
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	switch {
	case f.json:
		report := callReport{Reply: reply, Trailers: trailers, Micros: took.Microseconds()}
		if failed != nil {
			report.Reply, report.Error = nil, describeError(failed)
		}
		if err := printJSON(s.out, report); err != nil {
			return err
		}
	case failed == nil && !f.oneway:
		fmt.Fprintln(s.out, indentJSON(reply))
	}
	f.printTrailers(s, trailers)
	return f.end(to.client, failed)
}

// printTrailers prints the trailers of the replies, if the user asked for them.
func (f *callFlags) printTrailers(s streams, trailers anser.Metadata) {
	if !f.trailers || f.json {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(trailers)) {
		fmt.Fprintf(s.err, "%s: %s\n", printable.Text(key), printable.Text(trailers[key]))
	}
}

// end returns the error of the command for a failed call, or nil.
func (f *callFlags) end(c *anser.Client, failed *anser.Error) error {
	switch {
	case failed == nil:
		return nil
	case f.json:
		return &reportedError{failed}
	}
	return explain(c, failed)
}

// dial is target.Dial for interactive use, where the target may be mistyped: it fails at once if
// the registry cannot be reached.
func dial(ctx context.Context, typed string, r *sourceFlags, t *tlsFlags, opts ...anser.DialOption) (*anser.Client, error) {
	secure, err := t.options()
	if err != nil {
		return nil, err
	}
	source, err := r.source()
	if err != nil {
		return nil, err
	}
	c, err := target.Dial(typed, source, append(opts, secure...)...)
	if err != nil {
		return nil, &usageError{err}
	}
	if err := target.Reach(ctx, c.Status().Target); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// oneCall makes a call.
type oneCall = func(context.Context, ...anser.CallOption) error

// callOnce makes a call for an interactive user. A client keeps looking for an instance until the
// call's deadline, which is right for a program that started before its servers; a user should
// learn at once that no server listens. While there are untried instances it continues.
func callOnce(ctx context.Context, c *anser.Client, timeout time.Duration, call oneCall) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := call(ctx, anser.WithFailMode(anser.Failfast))
	var failed *anser.Error
	if !errors.As(err, &failed) || failed.Outcome != anser.NotSent || len(c.Status().Instances) < 2 {
		return err
	}
	return call(ctx)
}

// explain adds advice for the user to the error of a call.
func explain(c *anser.Client, e *anser.Error) error {
	status := c.Status()
	switch {
	case e.Outcome == anser.NotSent && status.Trouble != nil:
		return fmt.Errorf("%w\nthe registry is in trouble: %v", e, status.Trouble)
	case e.Outcome == anser.NotSent && status.Service != "" && len(status.Instances) == 0:
		return fmt.Errorf("%w\n\"anser ls\" lists the services of the registry", e)
	case e.Code == anser.Unimplemented && e.Outcome == anser.Refused:
		return fmt.Errorf("%w\n\"anser describe %s\" lists the methods", e, status.Target)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](e); ok {
		return fmt.Errorf("%w\n--ca names the PEM file with the authority to trust", e)
	}
	if _, ok := errors.AsType[x509.HostnameError](e); ok {
		return fmt.Errorf("%w\n--server-name says which name the certificate has, if it is not the host", e)
	}
	return e
}
