"""Learn the weights of linear models that choose among structured outputs."""
