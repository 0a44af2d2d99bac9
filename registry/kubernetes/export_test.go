package kubernetes

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/gentype"
)

// Access for tests that change the objects behind a registry's back.

func (r *Registry) Slices() *gentype.ClientWithList[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return r.client.slices
}

func (r *Registry) Leases() *gentype.ClientWithList[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return r.client.leases
}

func (r *Registry) Maps() *gentype.ClientWithList[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return r.client.maps
}
