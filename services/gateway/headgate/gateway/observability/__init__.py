"""What a gateway reports of its traffic: access log, metrics, traces, figures of rollouts."""
