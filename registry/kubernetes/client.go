package kubernetes

import (
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// client accesses the three kinds of objects that a registry needs, in one namespace. The
// clientset of client-go, which includes all kinds, would double the number of compiled packages.
type client struct {
	http   *http.Client
	conns  *connections
	slices *gentype.ClientWithList[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	leases *gentype.ClientWithList[*coordinationv1.Lease, *coordinationv1.LeaseList]
	maps   *gentype.ClientWithList[*corev1.ConfigMap, *corev1.ConfigMapList]
}

func newClient(api *rest.Config, namespace string) (*client, error) {
	fail := func(err error) (*client, error) {
		return nil, fmt.Errorf("configuration of kubernetes: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fail(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codec := runtime.NewParameterCodec(scheme)

	api = rest.CopyConfig(api)
	api.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// The API server throttles clients that send too many requests, and this limit would delay a
	// process with many instances for minutes.
	api.QPS, api.RateLimiter = -1, nil
	api.Timeout = 0 // it would end watches, too; requests have timeouts of their own
	api.WarningHandler = rest.NoWarnings{}
	if api.UserAgent == "" {
		api.UserAgent = "anser"
	}
	conns := newConnections(api.Dial)
	if api.Transport == nil { // a transport of the caller makes its own connections
		api.Dial = conns.dialContext
	}
	api.Wrap(func(next http.RoundTripper) http.RoundTripper { return reporting{next} })
	web, err := rest.HTTPClientFor(api)
	if err != nil {
		return fail(err)
	}
	reach := func(path string, gv schema.GroupVersion) (rest.Interface, error) {
		of := rest.CopyConfig(api)
		of.APIPath, of.GroupVersion = path, &gv
		return rest.RESTClientForConfigAndClient(of, web)
	}
	core, err := reach("/api", corev1.SchemeGroupVersion)
	if err != nil {
		return fail(err)
	}
	discovery, err := reach("/apis", discoveryv1.SchemeGroupVersion)
	if err != nil {
		return fail(err)
	}
	coordination, err := reach("/apis", coordinationv1.SchemeGroupVersion)
	if err != nil {
		return fail(err)
	}
	return &client{
		http: web, conns: conns,
		slices: gentype.NewClientWithList("endpointslices", discovery, codec, namespace,
			func() *discoveryv1.EndpointSlice { return new(discoveryv1.EndpointSlice) },
			func() *discoveryv1.EndpointSliceList { return new(discoveryv1.EndpointSliceList) }),
		leases: gentype.NewClientWithList("leases", coordination, codec, namespace,
			func() *coordinationv1.Lease { return new(coordinationv1.Lease) },
			func() *coordinationv1.LeaseList { return new(coordinationv1.LeaseList) }),
		maps: gentype.NewClientWithList("configmaps", core, codec, namespace,
			func() *corev1.ConfigMap { return new(corev1.ConfigMap) },
			func() *corev1.ConfigMapList { return new(corev1.ConfigMapList) }),
	}, nil
}

// close closes all connections; of the caller's transport, only the idle ones.
func (c *client) close() {
	utilnet.CloseIdleConnectionsFor(c.http.Transport)
	c.conns.close()
}
