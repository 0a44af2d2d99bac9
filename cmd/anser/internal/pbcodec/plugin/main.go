// Plugin is a protoc plugin that writes the files of package pbcodec.
package main

import (
	"github.com/anser-rpc/anser/cmd/anser/internal/gen"
	"github.com/anser-rpc/anser/cmd/anser/internal/pbcodec"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	protogen.Options{}.Run(func(plugin *protogen.Plugin) error {
		plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL |
			pluginpb.CodeGeneratorResponse_FEATURE_SUPPORTS_EDITIONS)
		plugin.SupportedEditionsMinimum = descriptorpb.Edition_EDITION_PROTO2
		plugin.SupportedEditionsMaximum = descriptorpb.Edition_EDITION_2024
		for _, file := range plugin.Files {
			if file.Generate {
				pbcodec.Generate(plugin, file, gen.Version())
			}
		}
		return nil
	})
}
