package proxy

type (
	node  struct{}
	link  struct{}
	track struct{}
)
