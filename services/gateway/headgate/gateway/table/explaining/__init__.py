"""Why a request goes where it goes."""
