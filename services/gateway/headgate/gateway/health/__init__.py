"""What an upstream's endpoints are fit for: active checks, ejection, circuit breaking, retry budgets, DNS."""
