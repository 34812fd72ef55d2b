"""What keeps somebody out who logs in elsewhere.

LoginRefused        the person, or the browser, may not come in; the text is for them
└── ProviderFailed  the provider does not answer, or not as it should; the text is for them and for the log
"""


class LoginRefused(Exception):
    """This login is not one that lets in."""


class ProviderFailed(LoginRefused):
    """The provider cannot be asked, or says what cannot be."""
