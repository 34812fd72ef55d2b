"""FastCGI towards endpoints: https://fastcgi-archives.github.io/FastCGI_Specification.html."""
