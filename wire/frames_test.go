package wire_test

import (
	"fmt"

	"github.com/anser-rpc/anser/wire"
)

// Results of parseFrame for the bodies without a type of their own.
type (
	methodBody struct {
		number uint32
		name   string
	}
	closeBody struct {
		reason wire.Reason
		text   string
	}
	dataBody struct {
		codec, compression uint8
		payload            []byte
	}
	cancelBody struct{}
	authBody   struct {
		scheme     string
		credential []byte
	}
	partBody    []byte // of the frame that arrives in PARTs
	pingBody    uint64
	drainBody   uint32
	endBody     []byte // the metadata block
	windowBody  uint32
	unknownBody []byte // of skippable frames
)

// parseFrame passes a whole frame to the parse function of its type. With a *wire.CallError the
// result is still the content of the frame.
func parseFrame(frame []byte, negotiated wire.Flags) (wire.Header, any, error) {
	h, err := wire.ParseHeaderWith(frame, negotiated)
	if err != nil {
		return h, nil, err
	}
	body := frame[wire.HeaderSize:]
	if negotiated != 0 {
		if body, err = wire.CheckChecksum(frame[:wire.HeaderSize], body); err != nil {
			return h, nil, err
		}
	}
	if h.Type >= wire.FirstSkippable {
		return h, unknownBody(body), nil
	}
	v, err := parseBody(h, body)
	return h, v, err
}

func parseBody(h wire.Header, body []byte) (any, error) {
	switch h.Type {
	case wire.TypeSettings:
		return wire.ParseSettings(body)
	case wire.TypeMethod:
		number, name, err := wire.ParseMethod(body)
		return methodBody{number, name}, err
	case wire.TypeRequest:
		var r wire.Request
		err := wire.ParseRequest(h.Flags, body, &r)
		return r, err
	case wire.TypeReply:
		return wire.ParseReply(h.Flags, body)
	case wire.TypeError:
		return wire.ParseError(h.Flags, body)
	case wire.TypeCancel:
		return cancelBody{}, wire.ParseCancel(body)
	case wire.TypePing, wire.TypePong:
		value, err := wire.ParsePing(body)
		return pingBody(value), err
	case wire.TypeDrain:
		grace, err := wire.ParseDrain(body)
		return drainBody(grace), err
	case wire.TypeClose:
		reason, text, err := wire.ParseClose(body)
		return closeBody{reason, text}, err
	case wire.TypeData:
		codec, compression, payload, err := wire.ParseData(body)
		return dataBody{codec, compression, payload}, err
	case wire.TypeEnd:
		metadata, err := wire.ParseEnd(h.Flags, body)
		return endBody(metadata), err
	case wire.TypeWindow:
		credit, err := wire.ParseWindow(h.ID, body)
		return windowBody(credit), err
	case wire.TypeAuth:
		scheme, credential, err := wire.ParseAuth(body)
		return authBody{scheme, credential}, err
	case wire.TypePart:
		return partBody(body), nil // what may be in it depends on the PARTs before
	default:
		return unknownBody(body), nil
	}
}

// encodeFrame is the inverse of parseFrame.
func encodeFrame(h wire.Header, v any) []byte {
	var frame []byte
	switch v := v.(type) {
	case wire.Settings:
		frame = wire.AppendSettings(nil, v)
	case methodBody:
		frame = wire.AppendMethod(nil, v.number, v.name)
	case wire.Request:
		frame = wire.AppendRequest(nil, h.ID, h.Flags, &v)
	case wire.Reply:
		frame = append(wire.AppendReplyHead(nil, h.ID, h.Flags, v.Codec, v.Compression, v.Metadata), v.Payload...)
		wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	case wire.ErrorBody:
		frame = wire.AppendError(nil, h.ID, h.Flags, &v)
	case cancelBody:
		frame = wire.AppendCancel(nil, h.ID)
	case pingBody:
		frame = wire.AppendPing(nil, h.Type, uint64(v))
	case drainBody:
		frame = wire.AppendDrain(nil, h.Flags, uint32(v))
	case closeBody:
		frame = wire.AppendClose(nil, v.reason, v.text)
	case dataBody:
		frame = append(wire.AppendDataHead(nil, h.ID, h.Flags, v.codec, v.compression), v.payload...)
		wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	case endBody:
		frame = wire.AppendEnd(nil, h.ID, v)
	case windowBody:
		frame = wire.AppendWindow(nil, h.ID, uint32(v))
	case authBody:
		frame = wire.AppendAuth(nil, v.scheme, v.credential)
	case partBody:
		frame = append(wire.AppendPartHead(nil, h.ID, uint32(len(v))), v...)
	case unknownBody:
		h.Length = uint32(len(v))
		if h.Type < wire.FirstSkippable {
			h.Flags &^= wire.FlagCRC
		}
		frame = append(wire.AppendHeader(nil, h), v...)
	default:
		panic(fmt.Sprintf("a body of type %T", v))
	}
	if h.Flags&wire.FlagCRC != 0 && h.Type < wire.FirstSkippable {
		frame = wire.AppendChecksum(frame, 0)
	}
	return frame
}
