package anser

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// Bind sets the function variable that target points to, so that it calls the method through c:
//
//	var divMod func(ctx context.Context, a, b int) (q, r int, err error)
//	err := anser.Bind(c, "Math.DivMod", &divMod)
//
// The function has a context as its first parameter and an error as its last result. The other
// parameters and results are those of the function on the server (see [Server.RegisterName] for
// the shapes), or others with the same messages; the names of the parameters do not matter. If
// target is a pointer to a struct, every exported field of a function type calls the method
// "name.Field", or the method that its tag names: `anser:"Other"`.
//
// The types are examined once, here. The functions are safe for concurrent use; a call costs about
// a microsecond more than one by [Call]. After an error the other results are zero. The options
// apply to every call.
func Bind(c *Client, name string, target any, opts ...CallOption) error {
	if err := c.usable(context.Background(), ""); err != nil {
		return fmt.Errorf("bind %q: %w", name, err)
	}
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("bind %q: %T is no pointer to a function variable or a struct of such: pass the address of one", name, target)
	}
	v = v.Elem()
	switch v.Kind() {
	case reflect.Func:
		f, err := bound(c, name, v.Type(), opts)
		if err != nil {
			return fmt.Errorf("bind %q: %w", name, err)
		}
		v.Set(f)
		return nil
	case reflect.Struct:
		return bindFields(c, name, v, opts)
	}
	return fmt.Errorf("bind %q: %T is no pointer to a function variable or a struct of such: pass the address of one", name, target)
}

func bindFields(c *Client, name string, v reflect.Value, opts []CallOption) error {
	bind := make(map[int]reflect.Value)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Type.Kind() != reflect.Func {
			continue
		}
		method := f.Tag.Get("anser")
		if method == "" {
			method = f.Name
		}
		made, err := bound(c, name+"."+method, f.Type, opts)
		if err != nil {
			return fmt.Errorf("bind %q: field %s: %w", name, f.Name, err)
		}
		bind[i] = made
	}
	if len(bind) == 0 {
		return fmt.Errorf("bind %q: %s has no exported field of a function type", name, v.Type())
	}
	for i, made := range bind {
		v.Field(i).Set(made)
	}
	return nil
}

var errBindContext = errors.New("the function has no context: begin with ctx context.Context")

// bound returns a function of type t that calls the method.
func bound(c *Client, name string, t reflect.Type, opts []CallOption) (reflect.Value, error) {
	sig, err := parseSignature(t)
	if err != nil {
		return reflect.Value{}, err
	}
	if !sig.withContext {
		return reflect.Value{}, errBindContext
	}
	if !sig.tuple {
		if o := c.o.call.with(opts); o.codec == nil {
			request, reply := reflect.New(sig.request).Interface(), reflect.New(sig.reply).Interface()
			if c.codecFor(request, reply) == nil {
				return reflect.Value{}, noCodec(request, reply)
			}
		} else if err := misfit(o.codec, reflect.New(sig.request).Interface(), reflect.New(sig.reply).Interface()); err != nil {
			return reflect.Value{}, err
		}
		return boundMessage(c, name, t, sig, opts), nil
	}
	in, err := newElements("argument", "arg", sig.in)
	if err != nil {
		return reflect.Value{}, err
	}
	out, err := newElements("result", "result", sig.out)
	if err != nil {
		return reflect.Value{}, err
	}
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		request, reply := in.new(), out.new()
		for i, v := range args[1:] {
			request.values[i].Set(v)
		}
		err := c.Call(contextOf(args[0]), name, request, reply, opts...)
		if err != nil {
			reply.clear() // a part may have been decoded
		}
		return append(reply.values, errorValue(err))
	}), nil
}

// boundMessage returns a function for a method with one message in each direction.
func boundMessage(c *Client, name string, t reflect.Type, sig *signature, opts []CallOption) reflect.Value {
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		ctx := contextOf(args[0])
		if sig.outReply {
			return []reflect.Value{errorValue(c.Call(ctx, name, args[1].Interface(), args[2].Interface(), opts...))}
		}
		reply := reflect.New(sig.reply)
		err := c.Call(ctx, name, args[1].Interface(), reply.Interface(), opts...)
		if err != nil {
			reply = reflect.Zero(reply.Type())
		}
		return []reflect.Value{reply, errorValue(err)}
	})
}

func contextOf(v reflect.Value) context.Context {
	ctx, _ := v.Interface().(context.Context) // a nil context is an error of the call
	return ctx
}

func errorValue(err error) reflect.Value {
	v := reflect.New(errorType).Elem()
	if err != nil {
		v.Set(reflect.ValueOf(err))
	}
	return v
}
