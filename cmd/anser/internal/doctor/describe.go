package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/codec"
)

// describe asks the server for its methods, with the credentials of the user, and reports whether
// it answered.
func (p *probe) describe(ctx context.Context) bool {
	err := p.timing.step("description", func() error { return p.ask(ctx) })
	failed, _ := errors.AsType[*anser.Error](err)
	switch {
	case err == nil && len(p.methods) == 0: // such as a gateway
		p.pass("description", "answers calls (%s)", table.Duration(p.timing.took()))
	case err == nil:
		p.described = true
		p.pass("description", "answers calls, and describes %s (%s)", counted(len(p.methods), "method", "methods"), table.Duration(p.timing.took()))
	case failed == nil:
		p.add("description", Fail, "correct the flags", "the server cannot be asked: %v", err)
	case failed.Code == anser.Unimplemented:
		p.pass("description", "answers calls (%s)", table.Duration(p.timing.took()))
		p.note("description", "the server does not describe its methods (anser.NoDescribe), so they were not compared")
	case failed.Code == anser.Unauthenticated, strings.Contains(failed.Message, "remote error: tls") && strings.Contains(failed.Message, "certificate"):
		p.add("authentication", Warn, "use --token-file, or --cert and --key", "the server does not take this client, so its methods were not examined: %s", failed.Message)
	case failed.Code == anser.PermissionDenied:
		p.pass("description", "answers calls (%s)", table.Duration(p.timing.took()))
		p.note("description", "this client may not ask for the methods, so they were not compared")
	case failed.Code == anser.ResourceExhausted:
		p.add("limits", Fail, "add instances, or raise the limit that docs/limits.md names", "the server refuses calls at a limit: %s", failed.Message)
	case failed.Code == anser.DeadlineExceeded:
		p.add("description", Fail, "the server takes connections, and answers no call: it is overloaded, or its process is paused", "no answer to a call within %v", p.config.Timeout)
		return false
	default:
		p.add("description", Fail, "look into the log of the server", "the call failed: %v", failed)
		return false
	}
	return err == nil || failed != nil
}

// ask calls anser.MethodsName.
func (p *probe) ask(ctx context.Context) error {
	opts := append([]anser.DialOption{anser.Codec(new(codec.JSON))}, p.config.Dial...)
	c, err := target.Dial(p.endpoint.address, p.config.Source, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := p.config.within(ctx)
	defer cancel()
	var list anser.MethodList
	err = c.Call(ctx, anser.MethodsName, new(anser.None), &list, anser.WithFailMode(anser.Failfast))
	p.methods = list.Methods
	return err
}
