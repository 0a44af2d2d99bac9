package transcode

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Rule is a google.api.HttpRule.
type Rule struct {
	// Method is the HTTP method, or [Any].
	Method string
	// Template is the path.
	Template string
	// Body is the field of the request that the body sets, "*" for the whole request, or "".
	Body string
	// ResponseBody is the field of the reply that is the body of the answer, or "" for the reply.
	ResponseBody string
}

// extension is the number of google.api.http among the options of a method.
const extension = 72295728

// The fields of HttpRule and CustomHttpPattern.
const (
	ruleBody       = 7
	ruleCustom     = 8
	ruleAdditional = 11
	ruleResponse   = 12
	customKind     = 1
	customPath     = 2
)

// patterns are the methods of HTTP of the fields of HttpRule.
var patterns = map[protowire.Number]string{2: "GET", 3: "PUT", 4: "POST", 5: "DELETE", 6: "PATCH"}

// Rules returns the rules of a method from its google.protobuf.MethodOptions, the first one before
// its additional bindings. It is read from the encoded options, since a program need not know the
// extension. A method without the annotation has none.
func Rules(options proto.Message) ([]Rule, error) {
	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(options)
	if err != nil {
		return nil, err
	}
	var encoded []byte
	err = fields(data, func(n protowire.Number, v []byte) {
		if n == extension {
			encoded = append(encoded, v...) // several of them are merged
		}
	})
	if err != nil || encoded == nil {
		return nil, err
	}
	rules, err := parseRule(encoded, true)
	if err != nil {
		return nil, fmt.Errorf("google.api.http: %w", err)
	}
	return rules, nil
}

// parseRule parses an encoded HttpRule.
func parseRule(data []byte, first bool) ([]Rule, error) {
	rules := make([]Rule, 1)
	r := &rules[0]
	var more []Rule
	var wrong error
	err := fields(data, func(n protowire.Number, v []byte) {
		switch n {
		case ruleBody:
			r.Body = string(v)
		case ruleResponse:
			r.ResponseBody = string(v)
		case ruleCustom:
			wrong = errors.Join(wrong, fields(v, func(n protowire.Number, v []byte) {
				switch n {
				case customKind:
					r.Method = string(v)
				case customPath:
					r.Template = string(v)
				}
			}))
		case ruleAdditional:
			if !first {
				wrong = errors.New("an additional binding has additional bindings itself")
				return
			}
			list, err := parseRule(v, false)
			wrong = errors.Join(wrong, err)
			more = append(more, list...)
		default:
			if method := patterns[n]; method != "" {
				r.Method, r.Template = method, string(v)
			}
		}
	})
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	if r.Template == "" {
		return nil, errors.New("a rule has no path")
	}
	if r.Method != Any && !isToken(r.Method) || r.Method == "CONNECT" {
		return nil, fmt.Errorf("%q is not a method of HTTP that a rule can have", r.Method)
	}
	return append(rules, more...), nil
}

// isToken reports whether s is an HTTP method in capital letters.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= maxMethod
}

// maxMethod is the length of a custom method; a port recognizes HTTP by its first bytes.
const maxMethod = 20

// fields calls f for each field of an encoded message that has a length.
func fields(data []byte, f func(protowire.Number, []byte)) error {
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		data = data[size:]
		if kind == protowire.BytesType {
			v, size := protowire.ConsumeBytes(data)
			if size < 0 {
				return protowire.ParseError(size)
			}
			f(n, v)
			data = data[size:]
			continue
		}
		if size = protowire.ConsumeFieldValue(n, kind, data); size < 0 {
			return protowire.ParseError(size)
		}
		data = data[size:]
	}
	return nil
}
