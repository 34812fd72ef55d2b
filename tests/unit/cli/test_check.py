def test_annotations_of_ingresses_and_services_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ingress, service = "metadata: {name: web}\nspec:\n  rules", "metadata: {name: web}\nspec: {ports"
    annotated = "metadata: {name: web, annotations: {headgate.dev/%s}}\nspec"
    text = (INGRESS % "http").replace(ingress, annotated % "client-networks: everybody" + ":\n  rules")
    text = text.replace(service, annotated % "load-balanc: random" + ": {ports")
    assert main(["check", str(write(tmp_path, text))]) == 1
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert "error: Ingress default/web: metadata.annotations[headgate.dev/client-networks]:" in first
    assert first.endswith("[InvalidAnnotation]")
    assert "warning: Service default/web: metadata.annotations[headgate.dev/load-balanc]:" in second
    assert "the nearest is headgate.dev/load-balance" in second
